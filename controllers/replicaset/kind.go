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

// Kind adapts one kind of owner, ReplicaSet or ReplicationController, to the
// Controller.
type Kind interface {
	// Traits returns the fixed properties of the kind.
	Traits() Traits
	// Informer returns the shared informer of the kind, which is indexed by namespace.
	Informer() cache.SharedIndexInformer
	// Owner converts an object of the kind. It returns an error if the spec is
	// invalid, for example if the selector cannot be parsed. Retrying does not help.
	Owner(object any) (Owner, error)
	// Live reads an owner from the API server, bypassing the cache.
	Live(ctx context.Context, namespace, name string) (Owner, error)
	// UpdateStatus writes status to owner and returns the new resourceVersion. The
	// write has owner's resourceVersion as its precondition.
	UpdateStatus(ctx context.Context, owner Owner, status Status) (resourceVersion string, err error)
	// Siblings returns the UIDs of the cached owners that have the same controller as
	// owner, including owner. Scale-down prefers nodes with many pods of these owners.
	// It returns nothing if owner has no controller.
	Siblings(owner Owner) ([]types.UID, error)
}

// Traits are the fixed properties in which the kinds differ.
type Traits struct {
	// GVK is the group, version and kind used in the controllerRefs of pods.
	GVK schema.GroupVersionKind
	// Resource is the plural resource name, as package ownwrites uses it.
	Resource string
	// Queue is the name of the work queue in metrics.
	Queue string
	// EventSource is the source component of events.
	EventSource string
	// ReadsOwnWrites is true if a sync is deferred until the caches contain this
	// controller's last writes for the owner.
	ReadsOwnWrites bool
	// CountsTerminating is true if the status has terminatingReplicas.
	CountsTerminating bool
}

// Owner is a ReplicaSet or a ReplicationController. Its fields are shared with the
// informer cache: do not modify them.
type Owner struct {
	// Object is the API object.
	Object podcontrol.Owner
	// Replicas is the desired number of pods.
	Replicas int
	// MinReady is how long a pod must be ready to count as available.
	MinReady time.Duration
	// Selector matches the owner's pods. An empty selector matches nothing.
	Selector labels.Selector
	// Template is the pod template.
	Template *corev1.PodTemplateSpec
	// Status is the current status of the object.
	Status Status
}

// ID identifies the owner for its lifetime.
func (o Owner) ID() ownership.ID { return ownership.IDOf(o.Object) }

// Terminating reports whether the owner has a deletionTimestamp.
func (o Owner) Terminating() bool { return o.Object.GetDeletionTimestamp() != nil }

// Status is the status of a ReplicaSet or a ReplicationController.
type Status struct {
	Replicas           int32
	FullyLabeled       int32
	Ready              int32
	Available          int32
	Terminating        *int32 // nil if the kind does not report it
	ObservedGeneration int64
	Conditions         []Condition
}

// Condition is one condition of a Status.
type Condition struct {
	Type               string
	Status             corev1.ConditionStatus
	LastTransitionTime metav1.Time
	Reason             string
	Message            string
}
