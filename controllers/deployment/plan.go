package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// none is the index of a ReplicaSet that does not exist. It is also the value of
// size.desiredReplicas if the annotation is missing or malformed.
const none = -1

// size contains the replica counts of one ReplicaSet. The functions in rolling.go, recreate.go
// and scale.go compute the next step of a rollout from these counts.
type size struct {
	// replicas is spec.replicas of the ReplicaSet.
	replicas int
	// available is status.availableReplicas, but at most the field replicas. Pods above this number
	// do not count, because the ReplicaSet controller will delete them.
	available int
	// desiredReplicas is the number in the annotation desired-replicas: the Deployment's
	// spec.replicas at the ReplicaSet's last scaling. If the annotation is missing or malformed,
	// the value is the constant none.
	desiredReplicas int
	// maxReplicas is the number in the annotation max-replicas: the Deployment's spec.replicas
	// plus maxSurge at the ReplicaSet's last scaling. It is 0 if the annotation is missing or
	// malformed.
	maxReplicas int
}

// replicaSetSizes contains the replica counts of all ReplicaSets of one Deployment, oldest
// first.
type replicaSetSizes struct {
	sizes []size
	// newIndex is the index of the new ReplicaSet in the field sizes. The new ReplicaSet has the
	// Deployment's pod template. If the new ReplicaSet does not exist, the value is the constant
	// none.
	newIndex int
}

// change is a planned change of one ReplicaSet's spec.replicas.
type change struct {
	index int // index in replicaSetSizes.sizes
	to    int // new value of spec.replicas
}

// sizeOf returns the replica counts of a ReplicaSet.
func sizeOf(set *appsv1.ReplicaSet) size {
	replicas := int(ptr.Deref(set.Spec.Replicas, 1))
	s := size{replicas: replicas, available: min(int(set.Status.AvailableReplicas), replicas), desiredReplicas: none}
	if desired, ok := parseReplicas(set.Annotations[desiredReplicasAnnotation]); ok {
		s.desiredReplicas = desired
	}
	if most, ok := parseReplicas(set.Annotations[maxReplicasAnnotation]); ok {
		s.maxReplicas = most
	}
	return s
}

// total returns the sum of spec.replicas of all ReplicaSets.
func (rs replicaSetSizes) total() int {
	total := 0
	for _, s := range rs.sizes {
		total += s.replicas
	}
	return total
}

// newSize returns the replica counts of the new ReplicaSet. It returns zero counts if the new
// ReplicaSet does not exist.
func (rs replicaSetSizes) newSize() size {
	if rs.newIndex == none {
		return size{}
	}
	return rs.sizes[rs.newIndex]
}

// active returns the indexes in rs.sizes of the ReplicaSets whose spec.replicas is above 0.
func (rs replicaSetSizes) active() []int {
	var active []int
	for i, s := range rs.sizes {
		if s.replicas > 0 {
			active = append(active, i)
		}
	}
	return active
}
