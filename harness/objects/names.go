package objects

import "github.com/kube-gauntlet/gauntlet/harness/kube"

// The resources with their API groups, as histories name them.
var (
	PodResource                   = kube.MustNamed(kube.Pod).Resource()
	ReplicaSetResource            = kube.MustNamed(kube.ReplicaSet).Resource()
	ReplicationControllerResource = kube.MustNamed(kube.ReplicationController).Resource()
	DeploymentResource            = kube.MustNamed(kube.Deployment).Resource()
	ServiceResource               = kube.MustNamed(kube.Service).Resource()
	EndpointsResource             = kube.MustNamed(kube.Endpoints).Resource()
)

// The kinds, as ownerReferences name them.
const (
	ReplicaSetKind = kube.ReplicaSet
	// ReplicationControllerKind is the kind of ReplicationControllers. Their upstream
	// controller does not wait until its cache contains its own writes, but the ReplicaSet
	// controller does.
	ReplicationControllerKind = kube.ReplicationController
	DeploymentKind            = kube.Deployment
)

// The annotations that controllers and users set.
const (
	// PodDeletionCostAnnotation contains the pod-deletion-cost. Scale-down deletes pods
	// with a lower cost first.
	PodDeletionCostAnnotation = "controller.kubernetes.io/pod-deletion-cost"

	// RevisionAnnotation contains the revision of a ReplicaSet, and the current revision of
	// a Deployment.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// DesiredReplicasAnnotation of a ReplicaSet contains spec.replicas of its Deployment. The
	// value is from the time when the Deployment controller last scaled the ReplicaSet.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxReplicasAnnotation of a ReplicaSet contains replicas + maxSurge of its Deployment. The
	// value is from the time when the Deployment controller last scaled the ReplicaSet.
	MaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
	// RevisionHistoryAnnotation contains the earlier revisions of a ReplicaSet. A ReplicaSet
	// gets a new revision when its Deployment returns to the pod template of this ReplicaSet.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// LastAppliedAnnotation contains the manifest of the last kubectl apply.
	LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
	// RollbackAnnotation requests a rollback of a Deployment. Its value is a revision, or 0
	// for the previous revision.
	RollbackAnnotation = "deprecated.deployment.rollback.to"

	// LeaderAnnotation marks Endpoints that are a leader-election record. No Service has
	// these Endpoints, and controllers must not change them.
	LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
	// OverCapacityAnnotation marks truncated Endpoints. They list only AddressesMax
	// addresses, although the Service has more.
	OverCapacityAnnotation = "endpoints.kubernetes.io/over-capacity"
)

// The labels that controllers set, and the values of these labels.
const (
	// PodTemplateHashLabel distinguishes the ReplicaSets of one Deployment. The template of
	// a ReplicaSet has this label, and the template of the Deployment does not.
	PodTemplateHashLabel = "pod-template-hash"
	// HeadlessLabel marks the Endpoints of a headless Service.
	HeadlessLabel = "service.kubernetes.io/headless"
	// ManagedByLabel names the controller that writes the Endpoints.
	ManagedByLabel         = "endpoints.kubernetes.io/managed-by"
	EndpointControllerName = "endpoint-controller" // the value of ManagedByLabel
)

// The types of conditions.
const (
	ReadyCondition          = "Ready"          // condition of a pod
	ReplicaFailureCondition = "ReplicaFailure" // condition of a ReplicaSet, ReplicationController or Deployment
	AvailableCondition      = "Available"      // condition of a Deployment
	ProgressingCondition    = "Progressing"    // condition of a Deployment
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
