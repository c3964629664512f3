package deployment

// scaleUpNew returns the size that the new ReplicaSet is to have: up to the replicas
// wanted as far as surge leaves room, and never more than those.
func scaleUpNew(l limits, rs replicaSetSizes) int {
	replicas := rs.newSize().replicas
	if replicas >= l.replicas {
		return l.replicas
	}
	room := max(0, l.maxReplicas()-rs.total())
	return min(replicas+room, l.replicas)
}

// scaleDownOld returns how the old ReplicaSets are to be reduced. What may go is what
// is not needed to have the least available, on the assumption that whatever is
// not available of the new one stays so. Replicas that are not available go
// first, wherever they are: they would hold the rollout up, and are no loss.
// Then the oldest ReplicaSets go.
func scaleDownOld(l limits, rs replicaSetSizes) []change {
	newSize := rs.newSize()
	budget := rs.total() - l.minAvailable() - (newSize.replicas - newSize.available)
	left := make([]int, len(rs.sizes)) // replicas, of each
	cut := func(i, atMost int) {
		n := max(0, min(atMost, budget))
		left[i] -= n
		budget -= n
	}
	for i, s := range rs.sizes {
		left[i] = s.replicas
		if i != rs.newIndex {
			cut(i, s.replicas-s.available)
		}
	}
	var changes []change
	for i, s := range rs.sizes {
		if i == rs.newIndex {
			continue
		}
		cut(i, left[i])
		if left[i] != s.replicas {
			changes = append(changes, change{i, left[i]})
		}
	}
	return changes
}
