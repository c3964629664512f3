package deployment

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// rollout is the state of one sync of one Deployment. It contains the objects that the sync has
// read, and the results of the sync's steps.
type rollout struct {
	// deployment is the Deployment from the informer cache. Do not modify it.
	deployment *appsv1.Deployment
	limits     limits
	// sets are the ReplicaSets of the Deployment from the informer cache, oldest first. Do not
	// modify them. After a write to a ReplicaSet, the API server's response replaces the cached
	// version in sets.
	sets []*appsv1.ReplicaSet
	// newIndex is the index of the new ReplicaSet in sets. The new ReplicaSet has the
	// Deployment's pod template. If there is no new ReplicaSet, newIndex is the constant none.
	newIndex int
	// stale says which write to the Deployment the informer cache still lacks. It is "" if the
	// cache contains all writes. While the cache is stale, the API server would reject another
	// write with a conflict.
	stale string
	now   time.Time

	// progressing is the condition Progressing that a step of this sync has set. If no step has
	// set it, progressing is nil, and estimateProgress says whether to compute the condition.
	progressing *appsv1.DeploymentCondition
	// hashCollision is true if another ReplicaSet already has the name of the new ReplicaSet.
	// The other ReplicaSet has a different owner or template. The sync then increments
	// status.collisionCount.
	hashCollision bool
	// estimateProgress is true if this sync continues the rollout. The method status then
	// computes the condition Progressing from the replica counts. For example, estimateProgress
	// is false while the Deployment is paused.
	estimateProgress bool
	// createFailed is true if the create of the new ReplicaSet failed. The replica counts in the
	// status then stay unchanged, because the sync did not reconcile the replicas.
	createFailed bool
	// deploymentWritten is true if this sync has updated the Deployment itself. Only the next
	// sync then writes the status.
	deploymentWritten bool
}

// setSets sorts the ReplicaSets, oldest first, and stores them. It also finds the new
// ReplicaSet.
func (r *rollout) setSets(sets []*appsv1.ReplicaSet) {
	r.sets = oldestFirst(sets)
	r.newIndex = findNewReplicaSet(&r.deployment.Spec.Template, r.sets)
}

// newSet returns the new ReplicaSet, or nil if the new ReplicaSet does not exist.
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

// replicaSetSizes returns the replica counts of all ReplicaSets. The functions that compute the
// next step use only these counts.
func (r *rollout) replicaSetSizes() replicaSetSizes {
	rs := replicaSetSizes{sizes: make([]size, len(r.sets)), newIndex: r.newIndex}
	for i, set := range r.sets {
		rs.sizes[i] = sizeOf(set)
	}
	return rs
}
