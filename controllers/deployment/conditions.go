package deployment

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Reasons of the condition Available.
const (
	minimumAvailable   = "MinimumReplicasAvailable"
	minimumUnavailable = "MinimumReplicasUnavailable"
)

// Reasons of the condition Progressing.
const (
	newSetCreated    = "NewReplicaSetCreated"
	newSetFound      = "FoundNewReplicaSet"
	newSetAvailable  = "NewReplicaSetAvailable"
	setUpdated       = "ReplicaSetUpdated"
	setCreateError   = "ReplicaSetCreateError"
	deadlineExceeded = "ProgressDeadlineExceeded"
	paused           = "DeploymentPaused"
	resumed          = "DeploymentResumed"
)

// condition returns the condition of a type, or nil. It is read only.
func condition(conditions []appsv1.DeploymentCondition, of appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range conditions {
		if conditions[i].Type == of {
			return &conditions[i]
		}
	}
	return nil
}

// withCondition returns conditions with c in place of the one of its type,
// which it leaves alone if status and reason are the same: then nothing has
// happened, whatever the message.
func withCondition(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	if before := condition(conditions, c.Type); before != nil && before.Status == c.Status && before.Reason == c.Reason {
		return conditions
	}
	return withNews(conditions, c)
}

// withNews is withCondition for something that has happened, be it once more.
// The transition is that of the status.
func withNews(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	conditions = slices.Clone(conditions)
	before := condition(conditions, c.Type)
	if before == nil {
		return append(conditions, c)
	}
	if before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	*before = c
	return conditions
}

func withoutCondition(conditions []appsv1.DeploymentCondition, of appsv1.DeploymentConditionType) []appsv1.DeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == of })
}

// replicaFailure returns what ReplicaSets say of failing to create or delete
// pods: the new one before all others, then the oldest. ok is false when none
// does.
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

// available is the condition that tells whether the least available are.
func available(is bool) appsv1.DeploymentCondition {
	c := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
		Reason: minimumAvailable, Message: "Deployment has minimum availability.",
	}
	if !is {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, minimumUnavailable, "Deployment does not have minimum availability."
	}
	return c
}
