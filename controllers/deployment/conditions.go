package deployment

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// These are the reasons that the controller writes to the condition Available.
const (
	reasonMinimumAvailable   = "MinimumReplicasAvailable"
	reasonMinimumUnavailable = "MinimumReplicasUnavailable"
)

// These are the reasons that the controller writes to the condition Progressing.
const (
	reasonNewReplicaSetCreated     = "NewReplicaSetCreated"
	reasonFoundNewReplicaSet       = "FoundNewReplicaSet"
	reasonNewReplicaSetAvailable   = "NewReplicaSetAvailable"
	reasonReplicaSetUpdated        = "ReplicaSetUpdated"
	reasonReplicaSetCreateError    = "ReplicaSetCreateError"
	reasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	reasonPaused                   = "DeploymentPaused"
	reasonResumed                  = "DeploymentResumed"
)

// findCondition returns the condition of the given type, or nil if there is none. Do not modify
// the condition, because it may be part of a cached object.
func findCondition(conditions []appsv1.DeploymentCondition, of appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range conditions {
		if conditions[i].Type == of {
			return &conditions[i]
		}
	}
	return nil
}

// withCondition returns a copy of the argument conditions with the condition c. This condition
// replaces an existing condition of the same type.
//
// If the existing condition has the same status and reason as c, withCondition returns the
// argument conditions unchanged. A different message alone changes nothing.
func withCondition(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	if before := findCondition(conditions, c.Type); before != nil && before.Status == c.Status && before.Reason == c.Reason {
		return conditions
	}
	return withRefreshedCondition(conditions, c)
}

// withRefreshedCondition returns a copy of the argument conditions with the condition c. This
// condition replaces an existing condition of the same type. Unlike withCondition, it replaces a
// condition with the same status and reason too.
//
// If the existing condition has the same status, c gets the existing lastTransitionTime. A new
// lastUpdateTime of the condition Progressing restarts the progress deadline.
func withRefreshedCondition(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	conditions = slices.Clone(conditions)
	before := findCondition(conditions, c.Type)
	if before == nil {
		return append(conditions, c)
	}
	if before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	*before = c
	return conditions
}

// withoutCondition returns a copy of the argument conditions without the condition of the given
// type.
func withoutCondition(conditions []appsv1.DeploymentCondition, of appsv1.DeploymentConditionType) []appsv1.DeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == of })
}

// replicaFailure returns the condition ReplicaFailure of a ReplicaSet, converted to a condition of
// the Deployment. It looks at the new ReplicaSet first, and then at all ReplicaSets, oldest first.
// The result ok is false if no ReplicaSet has this condition.
func replicaFailure(newSet *appsv1.ReplicaSet, oldestFirst []*appsv1.ReplicaSet) (c appsv1.DeploymentCondition, ok bool) {
	if newSet != nil {
		oldestFirst = append([]*appsv1.ReplicaSet{newSet}, oldestFirst...)
	}
	for _, set := range oldestFirst {
		for _, failure := range set.Status.Conditions {
			if failure.Type == appsv1.ReplicaSetReplicaFailure {
				return appsv1.DeploymentCondition{
					Type:               appsv1.DeploymentReplicaFailure,
					Status:             failure.Status,
					LastUpdateTime:     failure.LastTransitionTime,
					LastTransitionTime: failure.LastTransitionTime,
					Reason:             failure.Reason,
					Message:            failure.Message,
				}, true
			}
		}
	}
	return appsv1.DeploymentCondition{}, false
}

// availableCondition returns the condition Available, without times. Its status is True if the
// argument available is true, and False otherwise.
func availableCondition(available bool) appsv1.DeploymentCondition {
	c := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
		Reason: reasonMinimumAvailable, Message: "Deployment has minimum availability.",
	}
	if !available {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reasonMinimumUnavailable, "Deployment does not have minimum availability."
	}
	return c
}
