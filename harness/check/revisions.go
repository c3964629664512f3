package check

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// revisionsJudge: how a Deployment's controller tells its ReplicaSets apart.
//
// A ReplicaSet is written with no lower revision than the version that it was
// written from had, and made with a higher one than all that the process knew of.
// The collisionCount is written no lower than it was, and higher, by one, only
// after a create was refused because of its name, and what has the name is not
// the Deployment's own ReplicaSet of this template. No ReplicaSet is made for a
// template that has one, nor raised while an older one has the same template, in
// every way in which the process may have had them in mind.
type revisionsJudge struct{ findings }

func newRevisions(Settings) Checker { return &revisionsJudge{} }

func (j *revisionsJudge) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Object == nil {
		return
	}
	switch {
	case r.Request.Resource == deploymentResource:
		j.judgeCount(m, r.Request)
	case r.Request.Verb == "create":
		j.judgeNew(m, r.Request)
	case r.Request.Verb == "update":
		j.judgeRevision(m, r.Request)
		j.judgeChoice(m)
	}
}

// judgeRevision judges an update of a ReplicaSet.
func (j *revisionsJudge) judgeRevision(m *Model, r *history.Request) {
	known := m.sent.process.view.ownerNamed(r.Resource, r.Namespace, r.Name)
	if known == nil {
		return
	}
	from := recall[owner](m.facts, known.UID, r.Object.Version)
	if from == nil || from.revision == 0 {
		return
	}
	j.tested++
	to := wholeNumber(r.Object.Annotations[revisionAnnotation], 0)
	if to >= from.revision {
		return
	}
	j.violate(func() Evidence {
		return m.evidenceOf(&known.Ref, fmt.Sprintf("%s: %s lowered its revision from %d to %d", known, m.sent.process.name, from.revision, to),
			"a revision that only rises")
	})
}

// judgeNew judges the making of a ReplicaSet.
func (j *revisionsJudge) judgeNew(m *Model, r *history.Request) {
	s := judgeableScaling(m)
	if s == nil {
		return
	}
	j.tested++
	if all(s.states, func(sets []*owner) bool { return oldestOf(sets, s.template) != nil }) {
		j.violate(func() Evidence {
			twin := oldestOf(s.states[len(s.states)-1], s.template)
			return s.evidence(m, fmt.Sprintf("made ReplicaSet %s of the template that %s has", s.name, twin.Name), "one ReplicaSet of a template")
		})
	}
	least := int64(math.MaxInt64)
	for _, sets := range s.states {
		least = min(least, highest(sets))
	}
	if revision := wholeNumber(r.Object.Annotations[revisionAnnotation], 0); revision <= least {
		j.violate(func() Evidence {
			return s.evidence(m, fmt.Sprintf("made ReplicaSet %s of revision %d, though there was %d", s.name, revision, least), "a revision above all others")
		})
	}
}

// judgeChoice judges the raising of a ReplicaSet.
func (j *revisionsJudge) judgeChoice(m *Model) {
	s := judgeableScaling(m)
	if s == nil || s.template == nil || s.outdated || !s.up() || s.pending() {
		return
	}
	younger := func(sets []*owner) bool {
		set, oldest := named(sets, s.name), oldestOf(sets, s.template)
		return set != nil && oldest != nil && oldest.before(set)
	}
	if !all(s.deployments, func(d *deployment) bool { return d.template.same(s.template) }) {
		return
	}
	j.tested++
	if !all(s.states, younger) {
		return
	}
	j.violate(func() Evidence {
		oldest := oldestOf(s.states[len(s.states)-1], s.template)
		return s.evidence(m, fmt.Sprintf("raised ReplicaSet %s to %d, though %s of the same template is older", s.name, s.to, oldest.Name),
			"the oldest ReplicaSet of the template raised")
	})
}

// oldestOf is the oldest ReplicaSet of a template, nil if there is none.
func oldestOf(sets []*owner, pods *template) (oldest *owner) {
	for _, set := range sets {
		if set.template.same(pods) && (oldest == nil || set.before(oldest)) {
			oldest = set
		}
	}
	return oldest
}

// judgeCount judges a write of the Deployment.
func (j *revisionsJudge) judgeCount(m *Model, r *history.Request) {
	uid := m.sent.rollout.uid
	from := recall[deployment](m.facts, uid, r.Object.Version)
	to, err := m.facts.decodeDeployment(r.Object)
	if from == nil || err != nil { // the API server refuses what cannot be read
		return
	}
	j.tested++
	was, is := from.status.CollisionCount, to.status.CollisionCount
	switch {
	case is == was:
	case is < was:
		j.violate(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s lowered collisionCount from %d to %d", from, m.sent.process.name, was, is),
				"a collisionCount that only rises")
		})
	case is > was+1 || !m.collided(m.sent.rollout, to):
		j.violate(func() Evidence {
			names := slices.Sorted(maps.Keys(m.sent.rollout.taken))
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s raised collisionCount from %d to %d; the names it found taken, %v, are of its own ReplicaSet of this template",
				from, m.sent.process.name, was, is, names), "a rise by one, where a name is taken by another ReplicaSet")
		})
	}
}

// collided reports whether some name that was refused of late may be another's:
// whoever has it, in the view or in truth, is not the Deployment's or has another
// template. One that nobody can be seen to have may have been anybody's.
func (m *Model) collided(r *rollout, d *deployment) bool {
	for name := range r.taken {
		holders := []*owner{
			r.process.view.ownerNamed(setResource, d.Namespace, name),
			m.truth.ownerNamed(setResource, d.Namespace, name),
		}
		own := func(set *owner) bool {
			return set == nil || set.controller.UID == r.uid && set.template.same(d.template)
		}
		if !all(holders, own) || holders[0] == nil && holders[1] == nil {
			return true
		}
	}
	return false
}

// evidenceOf is evidence of what the current record does to an object.
func (m *Model) evidenceOf(ref *history.Ref, did, expected string) Evidence {
	return Evidence{Summary: did, Expected: expected, Object: ref, At: m.now, Records: []int64{m.seq}}
}
