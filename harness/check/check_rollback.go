package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// rollbackCheck is the row of rollback in All.
var rollbackCheck = Check{
	ID:               "rollback",
	Guarantee:        "A Deployment's template is changed only by a rollback that was asked for, to the revision asked for, and the wish goes with that write, or where it cannot be fulfilled.",
	Contract:         "Deployment 18",
	Property:         Safety,
	AllowedBehaviors: []string{"lost-response"},
	New:              newRollbackChecker,
}

// rollbackChecker: a process changes a Deployment's template only from a version
// that asks for it, to the template of the revision that it asks for, and takes
// the wish away with the same write: whatever is left to do twice will be. It takes
// the wish away without that only where there is no such revision, or it has the
// template already.
//
// A write that names no version overwrites whatever is there, so that it is judged by
// that.
type rollbackChecker struct{ findings }

func newRollbackChecker(Settings) Checker { return &rollbackChecker{} }

func (checker *rollbackChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != deploymentResource || r.Request.Subresource != "" || r.Request.Object == nil {
		return
	}
	from := recentlyDecoded[deployment](m.decoder, c.rollout.uid, r.Request.Object.Version)
	if r.Request.Object.Version == 0 {
		from = m.committed.deployments[c.rollout.uid]
	}
	to, err := m.decoder.decodeDeployment(r.Request.Object)
	if from == nil || err != nil { // the API server refuses what cannot be read
		return
	}
	if !c.rollout.ownershipClear(c.rollout.from, m.processTime) {
		return // a ReplicaSet may or may not be the Deployment's, and the one it goes back to
	}
	did, expected := "changed its template", ""
	switch {
	case !to.template.same(from.template):
		expected = c.rollout.wrongRollback(from, to)
	case from.rollback >= 0 && to.rollback < 0:
		did, expected = "took the wish to roll it back away", c.rollout.wrongRefusal(from)
	default:
		return
	}
	checker.exercised++
	if expected != "" {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s %s", from, c.process.name, did), expected)
		})
	}
}

// wrongRollback says what is wrong with a change of the template, "" if nothing is.
func (r *rolloutState) wrongRollback(from, to *deployment) string {
	switch {
	case from.rollback < 0:
		return "the template left alone, for nobody asked for a rollback"
	case to.rollback >= 0:
		return "the annotation that asks for it gone with the same write"
	}
	if to.template.hash != "" && from.template.hash == "" {
		return "the template without the label " + hashLabel + ", which is its ReplicaSet's"
	}
	for _, target := range r.rollbackTargets(from) {
		if target != nil && target.template.same(to.template) {
			return ""
		}
	}
	return fmt.Sprintf("the template of the revision asked for, %d", from.rollback)
}

// wrongRefusal says what is wrong with leaving the template as it is, "" if nothing is.
func (r *rolloutState) wrongRefusal(from *deployment) string {
	var asked *owner
	for _, asked = range r.rollbackTargets(from) {
		if asked == nil || asked.template.same(from.template) {
			return ""
		}
	}
	if asked == nil {
		return "" // nothing is known of its ReplicaSets
	}
	return fmt.Sprintf("the template of %s, which is of revision %d", asked.Name, asked.revision)
}

// rollbackTargets is the ReplicaSets that a Deployment asks to be rolled back to, nil where
// there is none, for each way in which the process may have had them in mind.
func (r *rolloutState) rollbackTargets(d *deployment) (all []*owner) {
	for _, state := range r.replicaSets {
		for _, sets := range [][]*owner{state.value.cached, state.value.withOwnWrites} {
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
