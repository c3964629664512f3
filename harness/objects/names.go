package objects

import "github.com/kube-gauntlet/gauntlet/harness/kube"

// Resources with their API groups, as histories name them. A test compares them with the
// rows of package kube.
const (
	PodResource                   = "pods"
	ReplicaSetResource            = "replicasets.apps"
	ReplicationControllerResource = "replicationcontrollers"
	DeploymentResource            = "deployments.apps"
	ServiceResource               = "services"
	EndpointsResource             = "endpoints"
)

// Kinds, as ownerReferences name them.
const (
	ReplicaSetKind = kube.ReplicaSet
	// ReplicationControllerKind is the kind of ReplicationControllers. Unlike the
	// ReplicaSet controller, the upstream controller of this kind does not wait until its
	// cache contains its own writes.
	ReplicationControllerKind = kube.ReplicationController
	DeploymentKind            = kube.Deployment
)

// Annotations.
const (
	// PodDeletionCostAnnotation is the annotation with the pod-deletion-cost.
	PodDeletionCostAnnotation = "controller.kubernetes.io/pod-deletion-cost"

	RevisionAnnotation        = "deployment.kubernetes.io/revision"
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	MaxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	LastAppliedAnnotation     = "kubectl.kubernetes.io/last-applied-configuration"
	// RollbackAnnotation requests a rollback to a revision; 0 means the previous one.
	RollbackAnnotation = "deprecated.deployment.rollback.to"

	// LeaderAnnotation marks Endpoints that are a leader-election record. Such Endpoints
	// belong to no Service, and controllers must not change them.
	LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
	// OverCapacityAnnotation marks Endpoints that list only AddressesMax addresses because
	// there are more.
	OverCapacityAnnotation = "endpoints.kubernetes.io/over-capacity"
)

// Labels, and the values that controllers set.
const (
	// PodTemplateHashLabel distinguishes the ReplicaSets of one Deployment. The
	// Deployment's own template does not have it.
	PodTemplateHashLabel   = "pod-template-hash"
	HeadlessLabel          = "service.kubernetes.io/headless"
	ManagedByLabel         = "endpoints.kubernetes.io/managed-by"
	EndpointControllerName = "endpoint-controller" // the value of ManagedByLabel
)

// Types of conditions.
const (
	ReadyCondition          = "Ready"          // of a pod
	ReplicaFailureCondition = "ReplicaFailure" // of an owner or a Deployment
	AvailableCondition      = "Available"      // of a Deployment
	ProgressingCondition    = "Progressing"    // of a Deployment
)

// Reasons of the condition Available.
const (
	MinimumReplicasAvailableReason   = "MinimumReplicasAvailable"
	MinimumReplicasUnavailableReason = "MinimumReplicasUnavailable"
)

// Reasons of the condition Progressing.
const (
	NewReplicaSetAvailableReason = "NewReplicaSetAvailable"
	ReplicaSetUpdatedReason      = "ReplicaSetUpdated"
	ReplicaSetCreateErrorReason  = "ReplicaSetCreateError"
	DeadlineExceededReason       = "ProgressDeadlineExceeded"
	DeploymentPausedReason       = "DeploymentPaused"
	DeploymentResumedReason      = "DeploymentResumed"
)

// Phases of pods.
const (
	PodPending   = "Pending"
	PodUnknown   = "Unknown"
	PodRunning   = "Running"
	PodFailed    = "Failed"
	PodSucceeded = "Succeeded"
)
