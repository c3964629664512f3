package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// none is the index of a ReplicaSet that does not exist. It is also the value of an annotation
// that does not exist.
const none = -1

// size contains the replica counts of one ReplicaSet. The functions in rolling.go, recreate.go
// and scale.go compute the next step from them.
type size struct {
	// replicas is spec.replicas.
	replicas int
	// available is status.availableReplicas, but at most replicas. The ReplicaSet controller
	// will delete the pods above replicas, so they do not count.
	available int
	// desiredReplicas is the value of the annotation desired-replicas: spec.replicas of the
	// Deployment when the ReplicaSet was last scaled. It is none if the annotation is missing
	// or malformed.
	desiredReplicas int
	// maxReplicas is the value of the annotation max-replicas: spec.replicas of the Deployment
	// plus maxSurge when the ReplicaSet was last scaled. It is 0 if the annotation is missing
	// or malformed.
	maxReplicas int
}

// replicaSetSizes contains the sizes of all ReplicaSets of a Deployment, oldest first.
type replicaSetSizes struct {
	sizes []size
	// newIndex is the index in sizes of the new ReplicaSet, which has the template of the
	// Deployment. It is none if this ReplicaSet does not exist.
	newIndex int
}

// change says that one ReplicaSet gets a new spec.replicas.
type change struct {
	index int // index in replicaSetSizes.sizes
	to    int // new value of spec.replicas
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

// total returns the sum of spec.replicas of all ReplicaSets.
func (rs replicaSetSizes) total() int {
	total := 0
	for _, s := range rs.sizes {
		total += s.replicas
	}
	return total
}

// newSize returns the size of the new ReplicaSet. It returns the zero size if the new
// ReplicaSet does not exist.
func (rs replicaSetSizes) newSize() size {
	if rs.newIndex == none {
		return size{}
	}
	return rs.sizes[rs.newIndex]
}

// active returns the indexes of the ReplicaSets whose spec.replicas is above 0.
func (rs replicaSetSizes) active() []int {
	var active []int
	for i, s := range rs.sizes {
		if s.replicas > 0 {
			active = append(active, i)
		}
	}
	return active
}
