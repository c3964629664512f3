package check

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// revisionsCheck is the row of revisions in All.
var revisionsCheck = Check{
	ID:               "revisions",
	Guarantee:        "A ReplicaSet's revision and a Deployment's collisionCount never fall, the count rises only where a name is another's, and no template gets a second ReplicaSet while the controller knows of one.",
	Contract:         "Deployment 4, 5, 14",
	Property:         Safety,
	AllowedBehaviors: []string{"lost-response", "revision-may-decrease", "cache-only-decisions"},
	New:              newRevisionsChecker,
}

// revisionsChecker: how a Deployment's controller tells its ReplicaSets apart.
//
// A ReplicaSet is written with no lower revision than the version that it was
// written from had, and made with a higher one than all that the process knew of.
// The collisionCount is written no lower than it was, and higher, by one, only
// after a create was refused because of its name, and what has the name is not
// the Deployment's own ReplicaSet of this template. No ReplicaSet is made for a
// template that has one, nor raised while an older one has the same template, in
// every way in which the process may have had them in mind.
type revisionsChecker struct{ findings }

func newRevisionsChecker(Settings) Checker { return &revisionsChecker{} }

func (checker *revisionsChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Object == nil {
		return
	}
	switch {
	case r.Request.Resource == deploymentResource:
		checker.checkCollisionCount(m, r.Request)
	case r.Request.Verb == "create":
		checker.checkCreate(m, r.Request)
	case r.Request.Verb == "update":
		checker.checkRevision(m, r.Request)
		checker.checkScaleUp(m)
	}
}

// checkRevision judges an update of a ReplicaSet.
func (checker *revisionsChecker) checkRevision(m *Model, r *history.Request) {
	known := m.sent.process.view.ownerNamed(r.Resource, r.Namespace, r.Name)
	if known == nil {
		return
	}
	from := recentlyDecoded[owner](m.decoder, known.UID, r.Object.Version)
	if from == nil || from.revision == 0 {
		return
	}
	checker.exercised++
	to := wholeNumber(r.Object.Annotations[revisionAnnotation], 0)
	if to >= from.revision {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&known.Ref, fmt.Sprintf("%s: %s lowered its revision from %d to %d", known, m.sent.process.name, from.revision, to),
			"a revision that only rises")
	})
}

// checkCreate judges the making of a ReplicaSet.
func (checker *revisionsChecker) checkCreate(m *Model, r *history.Request) {
	s := checkableScaling(m)
	if s == nil {
		return
	}
	checker.exercised++
	if every(s.replicaSetStates, func(sets []*owner) bool { return oldestOf(sets, s.template) != nil }) {
		checker.addViolation(func() Evidence {
			twin := oldestOf(s.replicaSetStates[len(s.replicaSetStates)-1], s.template)
			return s.evidence(m, fmt.Sprintf("made ReplicaSet %s of the template that %s has", s.name, twin.Name), "one ReplicaSet of a template")
		})
	}
	least := int64(math.MaxInt64)
	for _, sets := range s.replicaSetStates {
		least = min(least, highestRevision(sets))
	}
	if revision := wholeNumber(r.Object.Annotations[revisionAnnotation], 0); revision <= least {
		checker.addViolation(func() Evidence {
			return s.evidence(m, fmt.Sprintf("made ReplicaSet %s of revision %d, though there was %d", s.name, revision, least), "a revision above all others")
		})
	}
}

// checkScaleUp judges the raising of a ReplicaSet.
func (checker *revisionsChecker) checkScaleUp(m *Model) {
	s := checkableScaling(m)
	if s == nil || s.template == nil || s.stale || !s.scalesUp() || s.mayBePending() {
		return
	}
	younger := func(sets []*owner) bool {
		set, oldest := findByName(sets, s.name), oldestOf(sets, s.template)
		return set != nil && oldest != nil && oldest.olderThan(set)
	}
	if !every(s.deployments, func(d *deployment) bool { return d.template.same(s.template) }) {
		return
	}
	checker.exercised++
	if !every(s.replicaSetStates, younger) {
		return
	}
	checker.addViolation(func() Evidence {
		oldest := oldestOf(s.replicaSetStates[len(s.replicaSetStates)-1], s.template)
		return s.evidence(m, fmt.Sprintf("raised ReplicaSet %s to %d, though %s of the same template is older", s.name, s.to, oldest.Name),
			"the oldest ReplicaSet of the template raised")
	})
}

// checkCollisionCount judges a write of the Deployment.
func (checker *revisionsChecker) checkCollisionCount(m *Model, r *history.Request) {
	uid := m.sent.rollout.uid
	from := recentlyDecoded[deployment](m.decoder, uid, r.Object.Version)
	to, err := m.decoder.decodeDeployment(r.Object)
	if from == nil || err != nil { // the API server refuses what cannot be read
		return
	}
	checker.exercised++
	was, is := from.status.CollisionCount, to.status.CollisionCount
	switch {
	case is == was:
	case is < was:
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s lowered collisionCount from %d to %d", from, m.sent.process.name, was, is),
				"a collisionCount that only rises")
		})
	case is > was+1 || !m.nameMayBeTaken(m.sent.rollout, to):
		checker.addViolation(func() Evidence {
			names := slices.Sorted(maps.Keys(m.sent.rollout.takenNames))
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s raised collisionCount from %d to %d; the names it found taken, %v, are of its own ReplicaSet of this template",
				from, m.sent.process.name, was, is, names), "a rise by one, where a name is taken by another ReplicaSet")
		})
	}
}

// nameMayBeTaken reports whether some name that was refused of late may be another's:
// whoever has it, in the view or in truth, is not the Deployment's or has another
// template. One that nobody can be seen to have may have been anybody's.
func (m *Model) nameMayBeTaken(r *rolloutState, d *deployment) bool {
	for name := range r.takenNames {
		holders := []*owner{
			r.process.view.ownerNamed(replicaSetResource, d.Namespace, name),
			m.committed.ownerNamed(replicaSetResource, d.Namespace, name),
		}
		own := func(set *owner) bool {
			return set == nil || set.controller.UID == r.uid && set.template.same(d.template)
		}
		if !every(holders, own) || holders[0] == nil && holders[1] == nil {
			return true
		}
	}
	return false
}
