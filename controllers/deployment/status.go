package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// status returns the new status of the Deployment.
//
// If a step of this sync has set the condition Progressing, status does not compute this
// condition from the replica counts. The write of the status causes another sync, which then
// computes it.
func (r *rollout) status() appsv1.DeploymentStatus {
	status := *r.deployment.Status.DeepCopy()
	if r.hashCollision {
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	}
	if !r.createFailed {
		r.countReplicas(&status)
	}
	switch {
	case r.progressing != nil && r.progressing.Reason == reasonNewReplicaSetCreated:
		// The condition of an earlier ReplicaSet must not stay.
		status.Conditions = withRefreshedCondition(status.Conditions, *r.progressing)
		return status
	case r.progressing != nil:
		status.Conditions = withCondition(status.Conditions, *r.progressing)
		return status
	case r.createFailed || !r.estimateProgress:
		return status
	}
	status.Conditions = r.progressConditions(&status)
	if failure, failing := replicaFailure(r.newSet(), r.sets); failing {
		status.Conditions = withCondition(status.Conditions, failure)
	} else {
		status.Conditions = withoutCondition(status.Conditions, appsv1.DeploymentReplicaFailure)
	}
	return status
}

// countReplicas sets the replica counts of status, and the condition Available.
func (r *rollout) countReplicas(status *appsv1.DeploymentStatus) {
	*status = appsv1.DeploymentStatus{
		ObservedGeneration:  r.deployment.Generation,
		CollisionCount:      status.CollisionCount,
		Conditions:          status.Conditions,
		TerminatingReplicas: terminatingReplicas(r.sets),
	}
	var wanted int32
	for _, set := range r.sets {
		wanted += ptr.Deref(set.Spec.Replicas, 1)
		status.Replicas += set.Status.Replicas
		status.ReadyReplicas += set.Status.ReadyReplicas
		status.AvailableReplicas += set.Status.AvailableReplicas
	}
	if set := r.newSet(); set != nil {
		status.UpdatedReplicas = set.Status.Replicas
	}
	// Before the ReplicaSets have scaled down, more replicas may be available than desired.
	status.UnavailableReplicas = max(0, wanted-status.AvailableReplicas)
	c := availableCondition(int(status.AvailableReplicas) >= r.limits.minAvailable())
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(r.now), metav1.NewTime(r.now)
	status.Conditions = withCondition(status.Conditions, c)
}

// terminatingReplicas returns the number of terminating pods of all ReplicaSets, or nil if the
// number is unknown.
//
// It is unknown if a ReplicaSet has been observed by its controller, but its status has no
// terminatingReplicas.
func terminatingReplicas(sets []*appsv1.ReplicaSet) *int32 {
	var sum int32
	for _, set := range sets {
		switch own := set.Status.TerminatingReplicas; {
		case own != nil:
			sum += *own
		case set.Status.ObservedGeneration != 0:
			return nil
		}
	}
	return &sum
}
