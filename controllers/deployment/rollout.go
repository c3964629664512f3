package deployment

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// rollout is the state of one sync of a Deployment. It contains the objects that the sync has
// read, and the results of its steps.
type rollout struct {
	// deployment is the Deployment in the cache. It must not be modified.
	deployment *appsv1.Deployment
	limits     limits
	// sets are the ReplicaSets of the Deployment in the cache, oldest first. They must not be
	// modified. After a write, the ReplicaSet in the API server's response takes the place of
	// the cached one in sets.
	sets []*appsv1.ReplicaSet
	// newIndex is the index of the new ReplicaSet in sets. It is none if the new ReplicaSet
	// does not exist.
	newIndex int
	// stale says which write to the Deployment the informer cache does not contain yet. It is
	// "" if the cache contains all writes. While the cache is stale, the API server would
	// reject another write with a conflict.
	stale string
	now   time.Time

	// progressing is the condition Progressing that a step of this sync has set. If no step
	// has set it, it is nil. The field estimateProgress then says whether to compute the
	// condition.
	progressing *appsv1.DeploymentCondition
	// hashCollision is true if the name of the new ReplicaSet is taken by a ReplicaSet of
	// another owner or with another template. The status then gets a higher collisionCount.
	hashCollision bool
	// estimateProgress is true if this sync continues the rollout. The method status then
	// computes the condition Progressing from the replica counts. It is false, for example,
	// while the Deployment is paused.
	estimateProgress bool
	// createFailed is true if the new ReplicaSet could not be created. The replica counts in
	// the status then stay as they are, because the sync did not reconcile the replicas.
	createFailed bool
	// deploymentWritten is true if this sync has updated the Deployment itself. The next sync
	// then writes the status.
	deploymentWritten bool
}

// setSets stores the ReplicaSets, oldest first, and finds the new one.
func (r *rollout) setSets(sets []*appsv1.ReplicaSet) {
	r.sets = oldestFirst(sets)
	r.newIndex = findNewReplicaSet(&r.deployment.Spec.Template, r.sets)
}

// newSet returns the new ReplicaSet. It returns nil if it does not exist.
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

// replicaSetSizes returns the sizes of all ReplicaSets, from which the next step is computed.
func (r *rollout) replicaSetSizes() replicaSetSizes {
	rs := replicaSetSizes{sizes: make([]size, len(r.sets)), newIndex: r.newIndex}
	for i, set := range r.sets {
		rs.sizes[i] = sizeOf(set)
	}
	return rs
}
