package objects

import "github.com/kube-gauntlet/gauntlet/harness/kube"

// The resources of frequently used kinds as histories contain them, such as "replicasets.apps".
var (
	PodResource                   = kube.MustNamed(kube.Pod).Resource()
	ReplicaSetResource            = kube.MustNamed(kube.ReplicaSet).Resource()
	ReplicationControllerResource = kube.MustNamed(kube.ReplicationController).Resource()
	DeploymentResource            = kube.MustNamed(kube.Deployment).Resource()
	ServiceResource               = kube.MustNamed(kube.Service).Resource()
	EndpointsResource             = kube.MustNamed(kube.Endpoints).Resource()
)

// The names of frequently used kinds as ownerReferences contain them.
const (
	ReplicaSetKind = kube.ReplicaSet
	// ReplicationControllerKind is the name of the kind ReplicationController. Unlike the
	// ReplicaSet controller of Kubernetes, its controller does not wait until its cache contains
	// its own writes.
	ReplicationControllerKind = kube.ReplicationController
	DeploymentKind            = kube.Deployment
)

// The annotations of Kubernetes that checks read.
const (
	// PodDeletionCostAnnotation contains the deletion cost of a pod. A scale-down deletes pods
	// with a lower cost first.
	PodDeletionCostAnnotation = "controller.kubernetes.io/pod-deletion-cost"

	// RevisionAnnotation contains the revision of a ReplicaSet, and the current revision of
	// a Deployment.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// DesiredReplicasAnnotation of a ReplicaSet contains the Deployment's spec.replicas. The
	// Deployment controller writes the annotation when it scales the ReplicaSet, so the value
	// may be outdated.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxReplicasAnnotation of a ReplicaSet contains the Deployment's replicas + maxSurge. The
	// Deployment controller writes the annotation when it scales the ReplicaSet, so the value
	// may be outdated.
	MaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
	// RevisionHistoryAnnotation contains the earlier revisions of a ReplicaSet, such as "1,3".
	// When a Deployment returns to the pod template of a ReplicaSet, this ReplicaSet gets a new
	// revision.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// LastAppliedAnnotation contains the manifest of the last kubectl apply.
	LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
	// RollbackAnnotation requests a rollback of a Deployment. The value is the revision to
	// return to, or 0 for the previous revision.
	RollbackAnnotation = "deprecated.deployment.rollback.to"

	// LeaderAnnotation marks an Endpoints object that leader election uses as its lock. No
	// Service has such Endpoints, and the Endpoints controller must not change them.
	LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
	// TriggerTimeAnnotation of Endpoints contains the time of the change that made the controller write
	// them.
	TriggerTimeAnnotation = "endpoints.kubernetes.io/last-change-trigger-time"
	// OverCapacityAnnotation marks truncated Endpoints. They list only [AddressesMax] addresses,
	// although the Service has more.
	OverCapacityAnnotation = "endpoints.kubernetes.io/over-capacity"
)

// The labels that controllers set, and the values of these labels.
const (
	// PodTemplateHashLabel distinguishes the ReplicaSets of one Deployment. The pod template of
	// a ReplicaSet has this label, and the pod template of the Deployment does not.
	PodTemplateHashLabel = "pod-template-hash"
	// HeadlessLabel marks the Endpoints of a headless Service.
	HeadlessLabel = "service.kubernetes.io/headless"
	// ManagedByLabel names the controller that writes an Endpoints object.
	ManagedByLabel         = "endpoints.kubernetes.io/managed-by"
	EndpointControllerName = "endpoint-controller" // value of ManagedByLabel that the Endpoints controller sets
)

// The types of conditions in the status of objects.
const (
	ReadyCondition          = "Ready"          // type of a pod's condition
	ReplicaFailureCondition = "ReplicaFailure" // type of a condition of a ReplicaSet, ReplicationController or Deployment
	AvailableCondition      = "Available"      // type of a Deployment's condition
	ProgressingCondition    = "Progressing"    // type of a Deployment's condition
)

// The reasons of the condition Available.
const (
	MinimumReplicasAvailableReason   = "MinimumReplicasAvailable"
	MinimumReplicasUnavailableReason = "MinimumReplicasUnavailable"
)

// The reasons of the condition Progressing.
const (
	NewReplicaSetAvailableReason = "NewReplicaSetAvailable"
	ReplicaSetUpdatedReason      = "ReplicaSetUpdated"
	ReplicaSetCreateErrorReason  = "ReplicaSetCreateError"
	DeadlineExceededReason       = "ProgressDeadlineExceeded"
	DeploymentPausedReason       = "DeploymentPaused"
	DeploymentResumedReason      = "DeploymentResumed"
)

// The phases of pods.
const (
	PodPending   = "Pending"
	PodUnknown   = "Unknown"
	PodRunning   = "Running"
	PodFailed    = "Failed"
	PodSucceeded = "Succeeded"
)
