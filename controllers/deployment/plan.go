package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// none is the index of a ReplicaSet that does not exist, and the value of an absent
// annotation.
const none = -1

// size holds the replica counts of one ReplicaSet that the decisions use.
type size struct {
	// replicas is spec.replicas.
	replicas int
	// available is status.availableReplicas, but at most replicas. Pods above replicas
	// are about to be deleted, so they do not count as available.
	available int
	// desiredReplicas is the value of the annotation desired-replicas; none if it is
	// absent or malformed. It is the Deployment's replicas when the ReplicaSet was
	// last scaled.
	desiredReplicas int
	// maxReplicas is the value of the annotation max-replicas; 0 if it is absent or
	// malformed. It is the Deployment's replicas plus maxSurge when the ReplicaSet was
	// last scaled.
	maxReplicas int
}

// replicaSetSizes holds the sizes of all ReplicaSets of a Deployment, oldest first.
type replicaSetSizes struct {
	sizes []size
	// newIndex is the index of the new ReplicaSet, which has the Deployment's
	// template; none if it does not exist.
	newIndex int
}

// change is a new size for one ReplicaSet.
type change struct {
	index int // in replicaSetSizes
	to    int // new spec.replicas
}

// sizeOf returns the size of a ReplicaSet.
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

// total returns the sum of spec.replicas.
func (rs replicaSetSizes) total() int {
	total := 0
	for _, s := range rs.sizes {
		total += s.replicas
	}
	return total
}

// newSize returns the size of the new ReplicaSet, or the zero size if it does not
// exist.
func (rs replicaSetSizes) newSize() size {
	if rs.newIndex == none {
		return size{}
	}
	return rs.sizes[rs.newIndex]
}

// active returns the indexes of the ReplicaSets with replicas.
func (rs replicaSetSizes) active() []int {
	var active []int
	for i, s := range rs.sizes {
		if s.replicas > 0 {
			active = append(active, i)
		}
	}
	return active
}
