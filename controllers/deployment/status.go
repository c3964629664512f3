package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// status returns the new status of the Deployment. It computes the status from the results of this
// sync.
//
// A step of this sync may have set the condition Progressing, in r.progressing. In this case,
// status does not compute the condition from the replica counts. The write of the status causes
// another sync, which computes the condition.
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
		// Replace the condition even if it has the same status and reason from an earlier rollout.
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

// countReplicas sets the replica counts and the condition Available in the given status. It sums
// the counts of all ReplicaSets.
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
	// During a scale-down, more replicas may be available than the specs ask for.
	status.UnavailableReplicas = max(0, wanted-status.AvailableReplicas)
	c := availableCondition(int(status.AvailableReplicas) >= r.limits.minAvailable())
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(r.now), metav1.NewTime(r.now)
	status.Conditions = withCondition(status.Conditions, c)
}

// terminatingReplicas returns the number of terminating pods of all ReplicaSets. It returns nil
// if the number is unknown.
//
// The number is unknown if the status of a ReplicaSet has no terminatingReplicas. A ReplicaSet
// that the ReplicaSet controller has not observed yet counts as 0.
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
