package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// none is the index of a ReplicaSet that is not there.
const none = -1

// size is what planning knows of one ReplicaSet.
type size struct {
	// replicas is what its spec asks for.
	replicas int
	// available is how many of those its status shows as available, at most
	// replicas: more than that are about to be deleted, and are not counted on.
	available int
	// desiredReplicas is the Deployment's replicas when it was last sized, by its
	// annotation; none when unknown.
	desiredReplicas int
	// maxReplicas is the Deployment's replicas with surge when it was last sized, by
	// its annotation; 0 when unknown.
	maxReplicas int
}

// replicaSetSizes is the sizes of all ReplicaSets of a Deployment, oldest first.
type replicaSetSizes struct {
	sizes []size
	// newIndex is the index of the new ReplicaSet, the one that has the
	// Deployment's template; none while it is not there.
	newIndex int
}

// change gives a ReplicaSet another size.
type change struct {
	index int // in the fleet
	to    int // replicas
}

// sizeOf reads the size of a ReplicaSet.
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

// total is how many replicas the specs ask for.
func (rs replicaSetSizes) total() int {
	total := 0
	for _, s := range rs.sizes {
		total += s.replicas
	}
	return total
}

// newSize is the size of the new ReplicaSet, nothing while it is not there.
func (rs replicaSetSizes) newSize() size {
	if rs.newIndex == none {
		return size{}
	}
	return rs.sizes[rs.newIndex]
}

// active returns the indexes of the ReplicaSets that ask for replicas.
func (rs replicaSetSizes) active() []int {
	var active []int
	for i, s := range rs.sizes {
		if s.replicas > 0 {
			active = append(active, i)
		}
	}
	return active
}
