package deployment

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// rollout is what one sync knows of a Deployment, and what it has done.
type rollout struct {
	// deployment is as the cache shows it: read only.
	deployment *appsv1.Deployment
	limits     limits
	// sets are its ReplicaSets, oldest first. Each is read only, and replaced
	// by what the API server answered when it is written.
	sets []*appsv1.ReplicaSet
	// newIndex is the index of the new ReplicaSet, or none.
	newIndex int
	// stale says what the cache of Deployments does not show of what was last
	// written to this one; "" when it shows all. Writing it again would be
	// refused as a conflict.
	stale string
	now   time.Time

	// progressing is the condition that this sync has reason to set whatever
	// the replicas are doing.
	progressing *appsv1.DeploymentCondition
	// hashCollision says that the hash of the template is taken.
	hashCollision bool
	// estimateProgress says that progress is to be judged from the replicas.
	estimateProgress bool
	// createFailed says that the new ReplicaSet could not be made: that is reported,
	// and nothing else, since replicas were not looked after.
	createFailed bool
	// deploymentWritten says that the Deployment itself has been written: its status
	// is for the next sync to report.
	deploymentWritten bool
}

// setSets brings sets into order and finds the new one among them.
func (r *rollout) setSets(sets []*appsv1.ReplicaSet) {
	r.sets = oldestFirst(sets)
	r.newIndex = findNewReplicaSet(&r.deployment.Spec.Template, r.sets)
}

// newSet returns the new ReplicaSet, nil while it is not there.
func (r *rollout) newSet() *appsv1.ReplicaSet {
	if r.newIndex == none {
		return nil
	}
	return r.sets[r.newIndex]
}

// oldSets returns the ReplicaSets but for the new one, oldest first.
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
