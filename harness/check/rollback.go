package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges what a controller does when it is asked to roll back, and
// which ReplicaSets it deletes.

// rollbackAnnotation asks for a rollback to a revision, 0 for the last one.
const rollbackAnnotation = "deprecated.deployment.rollback.to"

// rollbackJudge: a process changes a Deployment's template only from a version
// that asks for it, to the template of the revision that it asks for, and takes
// the wish away with the same write: whatever is left to do twice will be. It takes
// the wish away without that only where there is no such revision, or it has the
// template already.
//
// A write that names no version overwrites whatever is there, so that it is judged by
// that.
type rollbackJudge struct{ findings }

func newRollback(Settings) Checker { return &rollbackJudge{} }

func (j *rollbackJudge) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != deploymentResource || r.Request.Subresource != "" || r.Request.Object == nil {
		return
	}
	from := recall[deployment](m.facts, c.rollout.uid, r.Request.Object.Version)
	if r.Request.Object.Version == 0 {
		from = m.truth.deployments[c.rollout.uid]
	}
	to, err := m.facts.decodeDeployment(r.Request.Object)
	if from == nil || err != nil { // the API server refuses what cannot be read
		return
	}
	if !c.rollout.clear(c.rollout.from, m.at) {
		return // a ReplicaSet may or may not be the Deployment's, and the one it goes back to
	}
	did, expected := "changed its template", ""
	switch {
	case !to.template.same(from.template):
		expected = c.rollout.misses(from, to)
	case from.rollback >= 0 && to.rollback < 0:
		did, expected = "took the wish to roll it back away", c.rollout.refuses(from)
	default:
		return
	}
	j.tested++
	if expected != "" {
		j.violate(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s %s", from, c.process.name, did), expected)
		})
	}
}

// misses says what is wrong with a change of the template, "" if nothing is.
func (r *rollout) misses(from, to *deployment) string {
	switch {
	case from.rollback < 0:
		return "the template left alone, for nobody asked for a rollback"
	case to.rollback >= 0:
		return "the annotation that asks for it gone with the same write"
	}
	if to.template.hash != "" && from.template.hash == "" {
		return "the template without the label " + hashLabel + ", which is its ReplicaSet's"
	}
	for _, target := range r.targets(from) {
		if target != nil && target.template.same(to.template) {
			return ""
		}
	}
	return fmt.Sprintf("the template of the revision asked for, %d", from.rollback)
}

// refuses says what is wrong with leaving the template as it is, "" if nothing is.
func (r *rollout) refuses(from *deployment) string {
	var asked *owner
	for _, asked = range r.targets(from) {
		if asked == nil || asked.template.same(from.template) {
			return ""
		}
	}
	if asked == nil {
		return "" // nothing is known of its ReplicaSets
	}
	return fmt.Sprintf("the template of %s, which is of revision %d", asked.Name, asked.revision)
}

// targets is the ReplicaSets that a Deployment asks to be rolled back to, nil where
// there is none, for each way in which the process may have had them in mind.
func (r *rollout) targets(d *deployment) (all []*owner) {
	for _, state := range r.sets {
		for _, sets := range [][]*owner{state.value.told, state.value.made} {
			wish := d.rollback
			if wish == 0 {
				wish = lastRevision(sets)
			}
			found := false
			for _, set := range sets {
				if set.revision == wish {
					all, found = append(all, set), true
				}
			}
			if !found {
				all = append(all, nil)
			}
		}
	}
	return all
}

// lastRevision is the second highest revision, 0 if there is none.
func lastRevision(sets []*owner) (second int64) {
	first := int64(0)
	for _, set := range sets {
		if set.revision >= first {
			first, second = set.revision, first
		} else {
			second = max(second, set.revision)
		}
	}
	return second
}

// historyJudge: a process deletes a ReplicaSet only where, in some way in which
// it may have had them in mind, that is old and empty, the rollout is paused or
// at its end, and there are so many more than the limit of a higher revision.
type historyJudge struct{ findings }

func newHistory(Settings) Checker { return &historyJudge{} }

func (j *historyJudge) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != setResource || r.Request.Verb != "delete" {
		return
	}
	if len(c.rollout.deployments) == 0 || len(c.rollout.sets) == 0 || c.process.view.reached[setResource] == 0 {
		return
	}
	j.tested++
	why := ""
	for _, d := range c.rollout.deployments {
		for _, state := range c.rollout.sets {
			for _, sets := range [][]*owner{state.value.told, state.value.made} {
				if why = d.value.keeps(sets, r.Request.Name); why == "" {
					return
				}
			}
		}
	}
	d := c.rollout.deployments[len(c.rollout.deployments)-1].value
	j.violate(func() Evidence {
		return m.evidenceOf(&d.Ref, fmt.Sprintf("%s: %s deleted its ReplicaSet %s: %s", d, c.process.name, r.Request.Name, why),
			"only old and empty ReplicaSets deleted, above the limit, the lowest revisions first, when the rollout is at its end")
	})
}

// keeps says why a ReplicaSet may not be deleted, "" if it may.
func (d *deployment) keeps(sets []*owner, name string) string {
	set, now := named(sets, name), oldestOf(sets, d.template)
	switch {
	case set == nil:
		return "it did not know of it"
	case set == now:
		return "it is the new one"
	case set.replicas != 0 || set.status.Replicas != 0:
		return fmt.Sprintf("it asks for %d replicas and has %d", set.replicas, set.status.Replicas)
	case set.generation > set.status.ObservedGeneration:
		return "its controller has not seen what it asks for"
	case d.terminating || !d.paused && !d.ended(sets, now):
		return "the rollout was not at its end"
	}
	older, old := 0, 0
	for _, other := range sets {
		if other == now {
			continue
		}
		old++
		if other.revision < set.revision {
			older++
		}
	}
	if older >= old-d.historyLimit {
		return fmt.Sprintf("of %d old ones, with a limit of %d, it comes after %d", old, d.historyLimit, older)
	}
	return ""
}

// ended reports whether the rollout is at its end, by its status or by its
// ReplicaSets.
func (d *deployment) ended(sets []*owner, now *owner) bool {
	s := &d.status
	reported := s.Replicas == d.replicas && s.UpdatedReplicas == d.replicas && s.AvailableReplicas == d.replicas && s.ObservedGeneration >= d.generation
	return reported || now != nil && d.complete(sets, now)
}
