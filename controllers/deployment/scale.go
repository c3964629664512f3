package deployment

import (
	"cmp"
	"slices"
)

// isScalingEvent reports whether the user has changed the number of replicas since the
// ReplicaSets were last sized. It must be dealt with before the rollout goes
// on, so that it changes how many there are and not how far the rollout is.
func isScalingEvent(l limits, rs replicaSetSizes) bool {
	return slices.ContainsFunc(rs.active(), func(i int) bool {
		desired := rs.sizes[i].desiredReplicas
		return desired != none && desired != l.replicas
	})
}

// rescale returns the sizes that follow from a change of the replicas wanted,
// while the rollout stands still. Those that keep their size are named too:
// their annotations must say what they were sized for, or resized would hold
// for ever. reported is how many replicas the Deployment's status counts.
func rescale(l limits, rs replicaSetSizes, rolling bool, reported int) []change {
	active := rs.active()
	newSize := rs.newSize()
	switch {
	case len(rs.sizes) == 0:
		return nil
	case len(active) == 0 && rs.newIndex != none:
		return []change{{rs.newIndex, l.replicas}}
	case len(active) == 0:
		return []change{{len(rs.sizes) - 1, l.replicas}}
	case len(active) == 1:
		return []change{{active[0], l.replicas}}
	case newSize.replicas == l.replicas && newSize.desiredReplicas == l.replicas && newSize.available == l.replicas:
		return scaleOldToZero(rs) // the new one can carry all
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

// proportional spreads the replicas that there are to be, with surge, over the
// active ReplicaSets in proportion to their sizes, so that a rollout that may be
// going wrong goes neither further nor back. The largest comes first and gets
// what rounding leaves; of equals the newest when there are more to be, the
// oldest when there are fewer. None moves against the direction of the whole.
//
// A ReplicaSet that has been sized for these limits has its share already: done
// in part, and then planned again, it comes to the same.
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
		gain := clampTowards(proportionalSize(s, most, reported)-s.replicas, missing)
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

// proportionalSize is the size of s when there are to be most replicas in all, where
// there were s.most, or as many as reported when that is not known. Halves
// round up.
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

// clampTowards returns n, limited to what lies between 0 and bound.
func clampTowards(n, bound int) int {
	if bound < 0 {
		return min(max(n, bound), 0)
	}
	return max(min(n, bound), 0)
}
