package deployment

import (
	"cmp"
	"slices"
)

// isScalingEvent reports whether the Deployment's spec.replicas has changed since the last
// scaling of its ReplicaSets. The controller then scales all ReplicaSets before it continues the
// rollout. The proportion of old and new pods therefore stays the same.
func isScalingEvent(l limits, rs replicaSetSizes) bool {
	return slices.ContainsFunc(rs.active(), func(i int) bool {
		desired := rs.sizes[i].desiredReplicas
		return desired != none && desired != l.replicas
	})
}

// rescale returns the changes of the active ReplicaSets after a change of the Deployment's
// spec.replicas. The changes do not continue the rollout, with one exception: if the new ReplicaSet
// already has all desired replicas, and all of them are available, the old ReplicaSets get 0.
//
// If only one ReplicaSet is active, it gets the Deployment's spec.replicas. If none is active, the
// new ReplicaSet gets this number or, if there is no new ReplicaSet, the newest one. If several are
// active, the strategy RollingUpdate distributes the change over them; see proportional. With the
// strategy Recreate, they keep their sizes.
//
// The result includes ReplicaSets that keep their size, because their annotations must change too.
// Otherwise isScalingEvent would stay true.
//
// The argument rolling is true for the strategy RollingUpdate. The argument reported is the
// Deployment's status.replicas. It replaces the annotation max-replicas where that annotation is
// missing.
func rescale(l limits, rs replicaSetSizes, rolling bool, reported int) []change {
	active := rs.active()
	newSize := rs.newSize()
	saturated := rs.newIndex != none && newSize.replicas == l.replicas && newSize.desiredReplicas == l.replicas && newSize.available == l.replicas
	switch {
	case len(rs.sizes) == 0:
		return nil
	case len(active) == 0 && rs.newIndex != none:
		return []change{{rs.newIndex, l.replicas}}
	case len(active) == 0:
		return []change{{len(rs.sizes) - 1, l.replicas}}
	case len(active) == 1:
		return []change{{active[0], l.replicas}}
	case saturated: // the new ReplicaSet has all desired replicas, and all of them are available
		return scaleOldToZero(rs)
	case rolling:
		return proportional(l, rs, reported)
	default:
		same := make([]change, len(active))
		for n, i := range active {
			same[n] = change{i, rs.sizes[i].replicas}
		}
		return same
	}
}

// proportional returns the changes that distribute spec.replicas plus maxSurge over the active
// ReplicaSets, in proportion to their sizes. A scaling therefore neither advances nor reverts a
// failing rollout.
//
// The result begins with the largest ReplicaSet, which gets the remainder of the rounding.
// ReplicaSets of the same size are in order of age: newest first in a scale-up, oldest first in a
// scale-down. No ReplicaSet shrinks in a scale-up or grows in a scale-down.
//
// A ReplicaSet keeps its size if its annotations already have the numbers in l, the current
// limits. If a scaling fails halfway, the next sync therefore computes the same sizes. The
// argument reported is the Deployment's status.replicas; see proportionalSize.
func proportional(l limits, rs replicaSetSizes, reported int) []change {
	most := l.maxReplicas()
	if l.replicas == 0 {
		most = 0
	}
	missing := most - rs.total()
	order := rs.active()
	slices.SortFunc(order, func(i, j int) int {
		age := cmp.Compare(i, j)
		if missing > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(rs.sizes[j].replicas, rs.sizes[i].replicas), age)
	})
	changes := make([]change, len(order))
	for n, i := range order {
		s := rs.sizes[i]
		gain := clampToward(proportionalSize(s, most, reported)-s.replicas, missing)
		changes[n] = change{i, s.replicas + gain}
		missing -= gain
	}
	for n := range changes {
		rest := max(missing, -changes[n].to)
		changes[n].to += rest
		missing -= rest
	}
	return changes
}

// proportionalSize returns the number of replicas of one ReplicaSet after a proportional scaling.
// The result is s.replicas multiplied by the new total and divided by the old total. It is rounded
// to the nearest integer, and up from .5.
//
// The new total is the argument most: the Deployment's spec.replicas plus maxSurge. The old total
// is s.maxReplicas, the same sum at the last scaling. If s.maxReplicas is 0, the old total is the
// argument reported. If reported is 0 too, the result is s.replicas.
func proportionalSize(s size, most, reported int) int {
	before := s.maxReplicas
	if before == 0 {
		before = reported
	}
	if before == 0 {
		return s.replicas
	}
	return (2*s.replicas*most + before) / (2 * before)
}

// clampToward returns the number n, limited to the range between 0 and bound. The argument n is
// the planned change of one ReplicaSet's spec.replicas. The argument bound is the total change
// that is still left to distribute, which is negative in a scale-down.
func clampToward(n, bound int) int {
	if bound < 0 {
		return min(max(n, bound), 0)
	}
	return max(min(n, bound), 0)
}
