package deployment

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// rollout is the state of one sync of a Deployment. It holds the objects that the sync
// has read and the results of its steps.
type rollout struct {
	// deployment is the cached Deployment. Do not modify it.
	deployment *appsv1.Deployment
	limits     limits
	// sets are the Deployment's ReplicaSets, oldest first. Do not modify them. After a
	// write, the API server's response replaces the cached ReplicaSet.
	sets []*appsv1.ReplicaSet
	// newIndex is the index of the new ReplicaSet, or none.
	newIndex int
	// stale explains which write to the Deployment the informer cache does not contain
	// yet; "" if it contains all. While stale is set, the API server would reject
	// another write with a conflict.
	stale string
	now   time.Time

	// progressing is the condition Progressing that this sync writes to the status,
	// regardless of the replicas. If it is nil, estimateProgress decides.
	progressing *appsv1.DeploymentCondition
	// hashCollision is true if another object has the name of the new ReplicaSet.
	hashCollision bool
	// estimateProgress is true if the condition Progressing is to be computed from the
	// replicas.
	estimateProgress bool
	// createFailed is true if the new ReplicaSet could not be created. The status then
	// reports only that, because the replicas were not reconciled.
	createFailed bool
	// deploymentWritten is true if this sync has updated the Deployment itself. This
	// sync then leaves the status to the next one.
	deploymentWritten bool
}

// setSets sorts sets and finds the new ReplicaSet.
func (r *rollout) setSets(sets []*appsv1.ReplicaSet) {
	r.sets = oldestFirst(sets)
	r.newIndex = findNewReplicaSet(&r.deployment.Spec.Template, r.sets)
}

// newSet returns the new ReplicaSet, or nil if it does not exist.
func (r *rollout) newSet() *appsv1.ReplicaSet {
	if r.newIndex == none {
		return nil
	}
	return r.sets[r.newIndex]
}

// oldSets returns all ReplicaSets except the new one, oldest first.
func (r *rollout) oldSets() []*appsv1.ReplicaSet {
	old := make([]*appsv1.ReplicaSet, 0, len(r.sets))
	for i, set := range r.sets {
		if i != r.newIndex {
			old = append(old, set)
		}
	}
	return old
}

func (r *rollout) replicaSetSizes() replicaSetSizes {
	rs := replicaSetSizes{sizes: make([]size, len(r.sets)), newIndex: r.newIndex}
	for i, set := range r.sets {
		rs.sizes[i] = sizeOf(set)
	}
	return rs
}
