package deployment

// grow returns the size that the new ReplicaSet is to have: up to the replicas
// wanted as far as surge leaves room, and never more than those.
func grow(l limits, f fleet) int {
	replicas := f.newSize().replicas
	if replicas >= l.replicas {
		return l.replicas
	}
	room := max(0, l.most()-f.total())
	return min(replicas+room, l.replicas)
}

// shrink returns how the old ReplicaSets are to be reduced. What may go is what
// is not needed to have the least available, on the assumption that whatever is
// not available of the new one stays so. Replicas that are not available go
// first, wherever they are: they would hold the rollout up, and are no loss.
// Then the oldest ReplicaSets go.
func shrink(l limits, f fleet) []change {
	fresh := f.newSize()
	budget := f.total() - l.leastAvailable() - (fresh.replicas - fresh.available)
	left := make([]int, len(f.sizes)) // replicas, of each
	cut := func(i, atMost int) {
		n := max(0, min(atMost, budget))
		left[i] -= n
		budget -= n
	}
	for i, s := range f.sizes {
		left[i] = s.replicas
		if i != f.current {
			cut(i, s.replicas-s.available)
		}
	}
	var changes []change
	for i, s := range f.sizes {
		if i == f.current {
			continue
		}
		cut(i, left[i])
		if left[i] != s.replicas {
			changes = append(changes, change{i, left[i]})
		}
	}
	return changes
}
