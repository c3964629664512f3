package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// proportionalScalingCheck demands that the Deployment controller scales each ReplicaSet only to a
// size that the state of the rollout allows. It examines each successful request that changes
// spec.replicas of a Deployment's ReplicaSet.
//
// Of a create, the check examines only the annotations. It examines no size if an orphaned or
// terminating ReplicaSet makes it unclear which ReplicaSets belong to the Deployment.
var proportionalScalingCheck = Check{
	ID:               "proportional-scaling",
	Guarantee:        "During a rollout, a controller scales up only the new ReplicaSet, to at most spec.replicas. It scales old ReplicaSets down, first by their unavailable pods and then the oldest ReplicaSet first. While a Deployment is paused or being scaled, each ReplicaSet gets its proportional share. A write that sets the size also sets the annotations desired-replicas and max-replicas.",
	Contract:         "Deployment 9, 10, 11, 12, 13, 14",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "The API server accepts a create, update or patch of the subject that sets spec.replicas of a ReplicaSet of a Deployment.",
	AllowedBehaviors: []string{"partial-proportional-scaling", "template-and-replicas-together", "whole-second-timestamps", "writes-from-one-snapshot"},
	New:              newProportionalScalingChecker,
}

// proportionalScalingChecker reports a new size of a ReplicaSet that no cached version of the
// Deployment and its ReplicaSets justifies. The size of a ReplicaSet is its spec.replicas.
//
// During a rollout, the controller scales the new ReplicaSet up towards the Deployment's
// spec.replicas, and scales the old ReplicaSets down. If several old ReplicaSets have available
// pods, the controller scales the oldest of them to 0 first. The checks max-surge and
// max-unavailable limit the size of each step.
//
// While the Deployment is paused, other rules apply. The same rules apply after a change of the
// Deployment's spec.replicas, until all ReplicaSets are scaled accordingly:
//
//   - If only one ReplicaSet is active, it gets all replicas. A ReplicaSet is active if its
//     spec.replicas is above 0. If none is active, the new ReplicaSet gets all
//     replicas, or else the newest.
//   - If all replicas of the new ReplicaSet are available, the controller scales the old
//     ReplicaSets to 0.
//   - Otherwise each ReplicaSet gets its proportional share. The largest ReplicaSet also gets
//     the remainder that rounding leaves.
//
// A write that sets the size must also set the annotations desired-replicas and max-replicas.
type proportionalScalingChecker struct{ findings }

func newProportionalScalingChecker(Settings) Checker { return &proportionalScalingChecker{} }

func (checker *proportionalScalingChecker) Observe(m *Model, _ *history.Record) {
	answered := m.answered
	if answered == nil || answered.scaling == nil || !answered.response.OK() || !answered.scaling.hasCachedState() {
		return // the record is no response to a successful scaling, or the model has no cached state
	}
	s := answered.scaling
	checker.recordsSize(m, s)
	if s.creates || s.stale || !s.rollout.ownershipClear(s.rollout.from, m.processTime) {
		return
	}
	checker.exercised++
	if older := s.olderToGoFirst(); older != nil {
		checker.addViolation(func() Evidence {
			return s.evidence(m, fmt.Sprintf("scaled ReplicaSet %s down to %d, which removes available pods, while the older ReplicaSet %s has spec.replicas %d", s.name, s.to, older.Name, older.Replicas),
				"a scale-down of the oldest ReplicaSet to 0 first")
		})
		return
	}
	for _, d := range s.recordedVersions() {
		for _, sets := range s.replicaSetStates {
			if set := findByName(sets, s.name); set == nil || allowedSizesOf(d, sets, set).holds(s.to) {
				return
			}
		}
	}
	checker.addViolation(func() Evidence {
		recorded, sets := s.recordedVersions(), s.replicaSetStates[len(s.replicaSetStates)-1]
		d, set := recorded[len(recorded)-1], findByName(sets, s.name)
		return s.evidence(m, fmt.Sprintf("scaled ReplicaSet %s from %d to %d", s.name, set.Replicas, s.to), allowedSizesOf(d, sets, set).String())
	})
}

// recordedVersions returns the cached versions of the Deployment that the controller may have acted
// on. They have the size that the write records in the annotations of the ReplicaSet. If no version
// has this size, the result contains all versions.
func (s *scaling) recordedVersions() []*objects.Deployment {
	recorded := slices.DeleteFunc(slices.Clone(s.deployments), func(d *objects.Deployment) bool { return !s.records(d) })
	if len(recorded) == 0 {
		return s.deployments
	}
	return recorded
}

// records reports whether the write records the size of a Deployment in the annotations of the
// ReplicaSet.
func (s *scaling) records(d *objects.Deployment) bool {
	return s.written[objects.DesiredReplicasAnnotation] == strconv.Itoa(d.Replicas) && s.written[objects.MaxReplicasAnnotation] == strconv.Itoa(d.MaxPods())
}

// recordsSize reports a write that creates or scales a ReplicaSet without recording the Deployment's
// size in it (contract Deployment 14). The next proportional scaling depends on these annotations.
// The size may be that of any recent cached version of the Deployment.
func (checker *proportionalScalingChecker) recordsSize(m *Model, s *scaling) {
	sameSize := func(sets []*objects.Owner) bool { return s.replicasBefore(sets) == s.to }
	if s.written == nil || !s.creates && (s.to == s.cached || slices.ContainsFunc(s.replicaSetStates, sameSize)) {
		return
	}
	checker.exercised++
	desired, most := s.written[objects.DesiredReplicasAnnotation], s.written[objects.MaxReplicasAnnotation]
	if slices.ContainsFunc(s.deployments, s.records) {
		return
	}
	checker.addViolation(func() Evidence {
		d := s.deployments[len(s.deployments)-1]
		return s.evidence(m, fmt.Sprintf("set spec.replicas of ReplicaSet %s to %d, with annotations %s=%q and %s=%q", s.name, s.to,
			objects.DesiredReplicasAnnotation, desired, objects.MaxReplicasAnnotation, most), fmt.Sprintf("%d and %d in these annotations", d.Replicas, d.MaxPods()))
	})
}

// olderToGoFirst returns an older ReplicaSet that the controller had to scale to 0 first
// (contract Deployment 9).
//
// It returns nil if any cached version justifies this scale-down. For example, the controller may
// first remove unavailable pods from a ReplicaSet of any age. ReplicaSets with equal creation
// timestamps do not count as older.
func (s *scaling) olderToGoFirst() (older *objects.Owner) {
	if !s.isRollingUpdate() || s.mayBePending() {
		return nil
	}
	old := func(set *objects.Owner) bool {
		return every(s.deployments, func(d *objects.Deployment) bool { return !d.Template.Same(set.Template) })
	}
	for _, sets := range s.replicaSetStates {
		set := findByName(sets, s.name)
		if set == nil || !old(set) || s.to >= min(availableReplicas(set), set.Replicas) {
			return nil
		}
		first := slices.IndexFunc(sets, func(other *objects.Owner) bool {
			return other.Replicas > 0 && other.Created.Before(set.Created) && old(other)
		})
		if first < 0 {
			return nil
		}
		older = sets[first]
	}
	return older
}

// allowedSizes contains the values of spec.replicas that the controller may set for a ReplicaSet.
// These are all values between low and high, both included. allowedSizes.now is the present value,
// which the controller may also keep.
type allowedSizes struct{ now, low, high int }

// holds reports whether the controller may set spec.replicas of the ReplicaSet to the given size.
func (s allowedSizes) holds(size int) bool { return size == s.now || size >= s.low && size <= s.high }

// String formats the allowed values for the evidence of a violation, such as "2 to 4 replicas, or
// 5 (unchanged)".
func (s allowedSizes) String() string {
	if s.low > s.high || s.low == s.now && s.high == s.now {
		return fmt.Sprintf("%d replicas (unchanged)", s.now)
	}
	return fmt.Sprintf("%s replicas, or %d (unchanged)", rangeText(s.low, s.high), s.now)
}

// allowedSizesOf returns the sizes that the controller may set for one ReplicaSet, the parameter
// set. The parameters d and sets are one cached state of the Deployment and all its ReplicaSets.
func allowedSizesOf(d *objects.Deployment, sets []*objects.Owner, set *objects.Owner) allowedSizes {
	current := oldestOf(sets, d.Template)
	switch {
	case d.Terminating:
		return allowedSizes{set.Replicas, set.Replicas, set.Replicas}
	case d.Paused || scalingPending(d, sets):
		return scaledSizes(d, sets, set, current)
	case set == current:
		return allowedSizes{set.Replicas, min(set.Replicas, d.Replicas), d.Replicas}
	case d.Recreate:
		return allowedSizes{set.Replicas, 0, 0}
	default:
		return allowedSizes{set.Replicas, 0, set.Replicas}
	}
}

// scaledSizes returns the allowed sizes of one ReplicaSet (the parameter set) while the
// Deployment is paused or being scaled. The parameter current is the new ReplicaSet, or nil if it
// does not exist yet.
func scaledSizes(d *objects.Deployment, sets []*objects.Owner, set, current *objects.Owner) allowedSizes {
	var active []*objects.Owner
	for _, other := range sets {
		if other.Replicas > 0 {
			active = append(active, other)
		}
	}
	first := set == current
	if current == nil { // the newest
		first = every(sets, func(other *objects.Owner) bool { return !set.Created.Before(other.Created) })
	}
	single := len(active) == 0 && first || len(active) == 1 && active[0] == set
	switch {
	case single:
		return allowedSizes{set.Replicas, d.Replicas, d.Replicas}
	case set.Replicas == 0 || len(active) <= 1:
		return allowedSizes{0, 0, 0}
	case current != nil && current.Replicas == d.Replicas && availableReplicas(current) >= d.Replicas && set != current:
		return allowedSizes{set.Replicas, 0, proportionalSizes(d, active, set).high}
	case d.Recreate:
		return allowedSizes{set.Replicas, set.Replicas, set.Replicas}
	}
	return proportionalSizes(d, active, set)
}

// proportionalSizes returns the allowed sizes of one ReplicaSet (the parameter set) if several
// active ReplicaSets are scaled in proportion.
//
// If exactSize can compute the size, only this size is allowed. Otherwise the ReplicaSet may get
// any size between its current size and its proportional share.
//
// The largest ReplicaSet also gets the replicas that rounding leaves over. The checker does not
// know their number exactly: it allows a deviation of one replica for each ReplicaSet. If some
// ReplicaSets have to scale up and others down, the largest ReplicaSet may get any size.
func proportionalSizes(d *objects.Deployment, active []*objects.Owner, set *objects.Owner) allowedSizes {
	total := d.MaxPods()
	if d.Replicas == 0 {
		total = 0
	}
	if to, certain := exactSize(d, active, set, total); certain {
		return allowedSizes{set.Replicas, to, to}
	}
	share := proportionalShare(d, set, total)
	result := allowedSizes{set.Replicas, min(set.Replicas, share), max(set.Replicas, share)}
	if every(active, func(other *objects.Owner) bool { return other.Replicas <= set.Replicas }) {
		missing := total - sumOf(active, specReplicas)
		if sharesConflict(d, active, missing) {
			return allowedSizes{set.Replicas, 0, math.MaxInt32}
		}
		left := missing - sumOf(active, func(other *objects.Owner) int { return proportionalShare(d, other, total) - other.Replicas }) + share - set.Replicas
		result.low = max(0, min(result.low, set.Replicas+max(missing, left-len(active))))
		result.high = max(result.high, set.Replicas+min(missing, left+len(active)))
	}
	return result
}

// exactSize returns the size that the controller must give one ReplicaSet, if this size can be
// computed exactly. The parameter set is this ReplicaSet. The slice active contains all ReplicaSets
// that are scaled in proportion. The number total is the sum of their sizes after scaling.
//
// The controller gives each ReplicaSet its share in the order of sortForScaling, until no replicas
// are left to distribute. The first ReplicaSet also gets the remainder.
//
// The second result says whether the first one is exact. It is true only under these conditions:
//
//   - All ReplicaSets have the max-replicas annotation.
//   - Either all scale up, or all scale down.
//   - No two have the same size and the same creation timestamp.
//   - In a scale-down, the first ReplicaSet has enough replicas for the remainder.
func exactSize(d *objects.Deployment, active []*objects.Owner, set *objects.Owner, total int) (to int, certain bool) {
	missing := total - sumOf(active, specReplicas)
	ordered, strict := sortForScaling(active, missing > 0)
	if !strict || sharesConflict(d, active, missing) || !every(active, func(other *objects.Owner) bool { return other.MaxReplicas > 0 }) {
		return 0, false
	}
	first := 0
	for i, other := range ordered {
		gain := proportionalShare(d, other, total) - other.Replicas
		if missing < 0 {
			gain = min(max(gain, missing), 0)
		} else {
			gain = max(min(gain, missing), 0)
		}
		missing -= gain
		if i == 0 {
			first = other.Replicas + gain
		}
		if other == set {
			to = other.Replicas + gain
		}
	}
	if set == ordered[0] {
		to += missing
	}
	return to, first+missing >= 0
}

// sortForScaling returns the ReplicaSets in the order in which the controller gives them their
// shares. The parameter growing is true for a scale-up.
//
// The largest ReplicaSet comes first. Among ReplicaSets of equal size, the newest comes first on
// scale-up, and the oldest on scale-down. The second result is false if this order is not unique:
// two ReplicaSets have the same size and the same creation timestamp.
func sortForScaling(active []*objects.Owner, growing bool) (ordered []*objects.Owner, strict bool) {
	order := func(a, b *objects.Owner) int {
		age := a.Created.Compare(b.Created)
		if growing {
			age = -age
		}
		return cmp.Or(cmp.Compare(b.Replicas, a.Replicas), age)
	}
	ordered = slices.SortedFunc(slices.Values(active), order)
	for i := 1; i < len(ordered); i++ {
		if order(ordered[i-1], ordered[i]) == 0 {
			return ordered, false
		}
	}
	return ordered, true
}

// sharesConflict reports whether some ReplicaSets have to scale up while others have to scale
// down.
//
// The number missing says how many replicas all ReplicaSets together have to gain. It is negative
// for a scale-down. There is a conflict if the max-replicas annotation of a ReplicaSet requires a
// change in the other direction.
func sharesConflict(d *objects.Deployment, active []*objects.Owner, missing int) bool {
	return !every(active, func(set *objects.Owner) bool {
		return missing >= 0 && set.MaxReplicas <= d.MaxPods() || missing <= 0 && set.MaxReplicas >= d.MaxPods()
	})
}
