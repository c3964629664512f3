package deployment

import (
	"cmp"
	"slices"
)

// resized reports whether the user has changed the number of replicas since the
// ReplicaSets were last sized. It must be dealt with before the rollout goes
// on, so that it changes how many there are and not how far the rollout is.
func resized(l limits, f fleet) bool {
	return slices.ContainsFunc(f.active(), func(i int) bool {
		desired := f.sizes[i].desired
		return desired != none && desired != l.replicas
	})
}

// rescale returns the sizes that follow from a change of the replicas wanted,
// while the rollout stands still. Those that keep their size are named too:
// their annotations must say what they were sized for, or resized would hold
// for ever. reported is how many replicas the Deployment's status counts.
func rescale(l limits, f fleet, rolling bool, reported int) []change {
	active := f.active()
	fresh := f.newSize()
	switch {
	case len(f.sizes) == 0:
		return nil
	case len(active) == 0 && f.current != none:
		return []change{{f.current, l.replicas}}
	case len(active) == 0:
		return []change{{len(f.sizes) - 1, l.replicas}}
	case len(active) == 1:
		return []change{{active[0], l.replicas}}
	case fresh.replicas == l.replicas && fresh.desired == l.replicas && fresh.available == l.replicas:
		return stop(f) // the new one can carry all
	case rolling:
		return proportional(l, f, reported)
	default:
		same := make([]change, len(active))
		for n, i := range active {
			same[n] = change{i, f.sizes[i].replicas}
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
func proportional(l limits, f fleet, reported int) []change {
	most := l.most()
	if l.replicas == 0 {
		most = 0
	}
	missing := most - f.total()
	order := f.active()
	slices.SortFunc(order, func(i, j int) int {
		age := cmp.Compare(i, j)
		if missing > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(f.sizes[j].replicas, f.sizes[i].replicas), age)
	})
	changes := make([]change, len(order))
	for n, i := range order {
		s := f.sizes[i]
		gain := between(portion(s, most, reported)-s.replicas, missing)
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

// portion is the size of s when there are to be most replicas in all, where
// there were s.most, or as many as reported when that is not known. Halves
// round up.
func portion(s size, most, reported int) int {
	before := s.most
	if before == 0 {
		before = reported
	}
	if before == 0 {
		return s.replicas
	}
	return (2*s.replicas*most + before) / (2 * before)
}

// between returns n, limited to what lies between 0 and bound.
func between(n, bound int) int {
	if bound < 0 {
		return min(max(n, bound), 0)
	}
	return max(min(n, bound), 0)
}
