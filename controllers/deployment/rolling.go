package deployment

// scaleUpNew returns the next spec.replicas of the new ReplicaSet. The result is the Deployment's
// spec.replicas, or less if the sum of all ReplicaSets would otherwise exceed spec.replicas plus
// maxSurge.
func scaleUpNew(l limits, rs replicaSetSizes) int {
	replicas := rs.newSize().replicas
	if replicas >= l.replicas {
		return l.replicas
	}
	room := max(0, l.maxReplicas()-rs.total())
	return min(replicas+room, l.replicas)
}

// scaleDownOld returns the next scale-down of the old ReplicaSets during a rolling update. At
// least minAvailable replicas stay available, even if the new ReplicaSet's unavailable replicas
// never become available.
//
// scaleDownOld first removes unavailable replicas from all old ReplicaSets, because they would
// block the rollout. Then it scales down the oldest ReplicaSets.
func scaleDownOld(l limits, rs replicaSetSizes) []change {
	newSize := rs.newSize()
	budget := rs.total() - l.minAvailable() - (newSize.replicas - newSize.available)
	left := make([]int, len(rs.sizes)) // spec.replicas of each ReplicaSet after the scale-down
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
