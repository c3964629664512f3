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
	// desired is the Deployment's replicas when it was last sized, by its
	// annotation; none when unknown.
	desired int
	// most is the Deployment's replicas with surge when it was last sized, by
	// its annotation; 0 when unknown.
	most int
}

// fleet is the sizes of all ReplicaSets of a Deployment, oldest first.
type fleet struct {
	sizes []size
	// current is the index of the new ReplicaSet, the one that has the
	// Deployment's template; none while it is not there.
	current int
}

// change gives a ReplicaSet another size.
type change struct {
	index int // in the fleet
	to    int // replicas
}

// sizeOf reads the size of a ReplicaSet.
func sizeOf(set *appsv1.ReplicaSet) size {
	replicas := int(ptr.Deref(set.Spec.Replicas, 1))
	s := size{replicas: replicas, available: min(int(set.Status.AvailableReplicas), replicas), desired: none}
	if desired, ok := count(set.Annotations[desiredReplicasAnnotation]); ok {
		s.desired = desired
	}
	if most, ok := count(set.Annotations[maxReplicasAnnotation]); ok {
		s.most = most
	}
	return s
}

// total is how many replicas the specs ask for.
func (f fleet) total() int {
	total := 0
	for _, s := range f.sizes {
		total += s.replicas
	}
	return total
}

// newSize is the size of the new ReplicaSet, nothing while it is not there.
func (f fleet) newSize() size {
	if f.current == none {
		return size{}
	}
	return f.sizes[f.current]
}

// active returns the indexes of the ReplicaSets that ask for replicas.
func (f fleet) active() []int {
	var active []int
	for i, s := range f.sizes {
		if s.replicas > 0 {
			active = append(active, i)
		}
	}
	return active
}
