package replicaset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podcontrol"
)

// Kind adapts the Controller to the kind of its owners: ReplicaSet or ReplicationController.
type Kind interface {
	// Properties returns the properties in which the kind differs from the other kind, such as its
	// resource name.
	Properties() Properties
	// Informer returns the shared informer of the owners. The informer must have the namespace
	// index.
	Informer() cache.SharedIndexInformer
	// Owner converts an API object to an Owner. It returns an error if the spec is invalid, for
	// example if the selector is malformed. A retry fails too until a user changes the object.
	Owner(object any) (Owner, error)
	// Live reads an owner from the API server, not from the cache.
	Live(ctx context.Context, namespace, name string) (Owner, error)
	// UpdateStatus writes the owner's status, and returns the new resourceVersion. The write
	// fails with a conflict if another client has changed the owner meanwhile.
	UpdateStatus(ctx context.Context, owner Owner, status Status) (resourceVersion string, err error)
	// Siblings returns the UIDs of all cached owners that have the same controller as owner,
	// including owner. The siblings of a ReplicaSet are all ReplicaSets of its Deployment.
	// Scale-down first deletes pods on nodes with many pods of the siblings. If owner has no
	// controller, Siblings returns nil.
	Siblings(owner Owner) ([]types.UID, error)
}

// Properties contains the properties in which ReplicaSets and ReplicationControllers differ.
type Properties struct {
	// GVK is the group, version and kind of the owners. The controller writes it to the pods'
	// controllerRefs.
	GVK schema.GroupVersionKind
	// Resource is the plural name of the resource, such as "replicasets".
	Resource string
	// Queue is the name of the controller's work queue in metrics and logs.
	Queue string
	// EventSource is the source component in the events that the controller emits.
	EventSource string
	// ReadsOwnWrites is true if a sync does nothing while the caches lack the controller's own
	// writes for the owner. The sync is then retried later. If ReadsOwnWrites is false, this
	// rule applies only after unmet expectations have expired.
	ReadsOwnWrites bool
	// CountsTerminating is true if the status of the kind has the field terminatingReplicas.
	CountsTerminating bool
}

// Owner is a ReplicaSet or a ReplicationController, in a form that both kinds have in common. It
// shares its fields with the informer cache, so do not modify them.
type Owner struct {
	// Object is the ReplicaSet or ReplicationController.
	Object podcontrol.Owner
	// Replicas is spec.replicas, or 1 if it is not set.
	Replicas int
	// MinReady is the time for which a pod must be ready before the pod counts as available.
	MinReady time.Duration
	// Selector is the label selector for the pods of the owner. An empty selector matches
	// nothing.
	Selector labels.Selector
	// Template is the template from which the controller creates pods.
	Template *corev1.PodTemplateSpec
	// Status is the status of Object in a common form.
	Status Status
}

// ID returns the key "namespace/name" and the UID of the owner.
func (o Owner) ID() ownership.ID { return ownership.IDOf(o.Object) }

// Terminating reports whether the owner has a deletion timestamp.
func (o Owner) Terminating() bool { return o.Object.GetDeletionTimestamp() != nil }

// Status is the status of a ReplicaSet or a ReplicationController, in a form that both kinds have
// in common.
type Status struct {
	Replicas           int32
	FullyLabeled       int32
	Ready              int32
	Available          int32
	Terminating        *int32 // nil if the kind does not report terminating pods
	ObservedGeneration int64
	Conditions         []Condition
}

// Condition is a status condition of a ReplicaSet or a ReplicationController, in a form that both
// kinds have in common.
type Condition struct {
	Type               string
	Status             corev1.ConditionStatus
	LastTransitionTime metav1.Time
	Reason             string
	Message            string
}
