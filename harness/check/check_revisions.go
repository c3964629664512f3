package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// revisionsCheck demands right revisions of ReplicaSets, a right collisionCount, and one ReplicaSet
// for each template. It examines each create and update of a Deployment's ReplicaSet, and each
// write of a Deployment.
//
// It skips an update if the history does not contain the version on which the update is based.
var revisionsCheck = Check{
	ID:               "revisions",
	Guarantee:        "A controller never lowers the revision of a ReplicaSet or the collisionCount of a Deployment. When it raises the revision of a ReplicaSet, it appends the earlier one to the revision history. Otherwise, it does not change the revision history. It raises collisionCount only by one, after a name conflict with another ReplicaSet. It creates no ReplicaSet for a template if its cache has one with this template.",
	Contract:         "Deployment 4, 5, 14",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "The subject creates or updates a ReplicaSet of a Deployment, or writes the Deployment.",
	AllowedBehaviors: []string{"lost-response", "revision-may-decrease", "cache-only-decisions"},
	New:              newRevisionsChecker,
}

// revisionsChecker reports wrong revisions, wrong values of collisionCount, and a second ReplicaSet
// for the same template.
//
//   - An update must not decrease the revision of a ReplicaSet. An update that increases the revision
//     must append the earlier one to the revision history. Any other update must keep the history.
//   - A new ReplicaSet must have a higher revision than all ReplicaSets in the cache.
//   - The collisionCount must not decrease. It may increase by one after a create failed because
//     another ReplicaSet has the name. The other ReplicaSet must have another template, or the
//     Deployment must not control it.
//   - A controller must not create a ReplicaSet for a template that an existing ReplicaSet has. If
//     two ReplicaSets have the same template, the controller must scale up the older one. The
//     process may have acted on any of several cached states. The checker reports a violation only
//     if each of them contains the existing or older ReplicaSet.
//
// Known upstream issue false-collision: after a create failed with AlreadyExists, a process looks
// in its cache for the ReplicaSet that has the name. It finds the ReplicaSet of a deleted
// Deployment that had the same name as the present Deployment, and increases collisionCount by
// mistake.
type revisionsChecker struct{ findings }

func newRevisionsChecker(s Settings) Checker {
	return &revisionsChecker{findings{upstream: s.Upstream}}
}

func (checker *revisionsChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Object == nil {
		return
	}
	switch {
	case r.Request.Resource == objects.DeploymentResource:
		checker.checkCollisionCount(m, r.Request)
	case r.Request.Verb == "create":
		checker.checkCreate(m, r.Request)
	case r.Request.Verb == "update":
		checker.checkRevision(m, r.Request)
		checker.checkScaleUp(m)
	}
}

// checkRevision reports an update of a ReplicaSet that decreases its annotation
// deployment.kubernetes.io/revision. It also reports an update that increases the annotation and
// does not append the earlier value to deployment.kubernetes.io/revision-history.
func (checker *revisionsChecker) checkRevision(m *Model, r *history.Request) {
	cached := m.sent.process.view.ownerNamed(r.Resource, r.Namespace, r.Name)
	if cached == nil {
		return
	}
	from := objects.Cached[objects.Owner](m.decoder, cached.UID, r.Object.Version)
	if from == nil || from.Revision == 0 {
		return
	}
	checker.exercised++
	to := objects.WholeNumber(r.Object.Annotations[objects.RevisionAnnotation], 0)
	if to >= from.Revision {
		checker.checkHistory(m, from, to, r.Object.Annotations[objects.RevisionHistoryAnnotation])
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&cached.Ref, fmt.Sprintf("%s: %s changed the revision of the ReplicaSet from %d to %d", cached, m.sent.process.name, from.Revision, to),
			fmt.Sprintf("revision %d or higher", from.Revision))
	})
}

// checkHistory reports an update with a wrong annotation deployment.kubernetes.io/revision-history. An
// update that increases the revision must append the earlier one. Any other update must not change the
// annotation. The argument from is the version of the ReplicaSet on which the update is based. The
// arguments to and got are the revision and the annotation in the update.
func (checker *revisionsChecker) checkHistory(m *Model, from *objects.Owner, to int64, got string) {
	want, change := from.RevisionHistory, fmt.Sprintf("kept revision %d of the ReplicaSet", from.Revision)
	if to > from.Revision {
		want, change = appendRevision(from.RevisionHistory, from.Revision), fmt.Sprintf("increased the revision of the ReplicaSet from %d", from.Revision)
	}
	if got == want {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s %s, and set annotation %s to %q",
			from, m.sent.process.name, change, objects.RevisionHistoryAnnotation, got), fmt.Sprintf("%q", want))
	})
}

// revisionHistoryMax is the maximum length of the annotation deployment.kubernetes.io/revision-history
// (contract Deployment 14).
const revisionHistoryMax = 2000

// appendRevision appends a revision to a list of revisions, such as "1,3". It drops the first
// revisions of a list that would become longer than revisionHistoryMax.
func appendRevision(list string, revision int64) string {
	list = strings.TrimPrefix(list+","+strconv.FormatInt(revision, 10), ",")
	for len(list) > revisionHistoryMax {
		_, list, _ = strings.Cut(list, ",")
	}
	return list
}

// checkCreate reports a create of a ReplicaSet whose template another ReplicaSet already has. It
// also reports a create with a revision that is not higher than the revisions of all cached
// ReplicaSets.
func (checker *revisionsChecker) checkCreate(m *Model, r *history.Request) {
	s := checkableScaling(m)
	if s == nil {
		return
	}
	checker.exercised++
	if every(s.replicaSetStates, func(sets []*objects.Owner) bool { return oldestOf(sets, s.template) != nil }) {
		checker.addViolation(func() Evidence {
			existing := oldestOf(s.replicaSetStates[len(s.replicaSetStates)-1], s.template)
			return s.evidence(m, fmt.Sprintf("created ReplicaSet %s with the same template as ReplicaSet %s", s.name, existing.Name), "one ReplicaSet for each template")
		})
	}
	lowest := int64(math.MaxInt64)
	for _, sets := range s.replicaSetStates {
		lowest = min(lowest, highestRevision(sets))
	}
	if revision := objects.WholeNumber(r.Object.Annotations[objects.RevisionAnnotation], 0); revision <= lowest {
		checker.addViolation(func() Evidence {
			return s.evidence(m, fmt.Sprintf("created ReplicaSet %s with revision %d when the highest revision was %d", s.name, revision, lowest), fmt.Sprintf("revision %d or higher", lowest+1))
		})
	}
}

// checkScaleUp reports the scale-up of a ReplicaSet if an older ReplicaSet has the same template.
// The controller must then scale up the oldest ReplicaSet with this template.
func (checker *revisionsChecker) checkScaleUp(m *Model) {
	s := checkableScaling(m)
	if s == nil || s.template == nil || s.stale || !s.scalesUp() || s.mayBePending() {
		return
	}
	younger := func(sets []*objects.Owner) bool {
		set, oldest := findByName(sets, s.name), oldestOf(sets, s.template)
		return set != nil && oldest != nil && oldest.OlderThan(set)
	}
	if !every(s.deployments, func(d *objects.Deployment) bool { return d.Template.Same(s.template) }) {
		return
	}
	checker.exercised++
	if !every(s.replicaSetStates, younger) {
		return
	}
	checker.addViolation(func() Evidence {
		oldest := oldestOf(s.replicaSetStates[len(s.replicaSetStates)-1], s.template)
		return s.evidence(m, fmt.Sprintf("scaled ReplicaSet %s up to %d, but ReplicaSet %s with the same template is older", s.name, s.to, oldest.Name),
			"a scale-up of the oldest ReplicaSet with this template")
	})
}

// checkCollisionCount reports a write of the Deployment that changes status.collisionCount
// without a reason. A reason is a name collision with another ReplicaSet.
func (checker *revisionsChecker) checkCollisionCount(m *Model, r *history.Request) {
	from, to := m.collisionCountsOf(r)
	if from == nil {
		return
	}
	checker.exercised++
	before, after := from.Status.CollisionCount, to.Status.CollisionCount
	switch {
	case after == before:
	case after < before:
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s changed status.collisionCount from %d to %d", from, m.sent.process.name, before, after),
				fmt.Sprintf("status.collisionCount %d or higher", before))
		})
	case after > before+1 || !m.nameMayBeTaken(m.sent.rollout, to):
		describe := func() Evidence {
			names := slices.Sorted(maps.Keys(m.sent.rollout.takenNames))
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s changed status.collisionCount from %d to %d; names for which its creates returned AlreadyExists: %v",
				from, m.sent.process.name, before, after, names), "an increase by one, and only after a create failed because another ReplicaSet has the name")
		}
		if m.mistakenReplicaSet(r) != nil {
			checker.addKnownViolation(falseCollision, describe)
			return
		}
		checker.addViolation(describe)
	}
}
