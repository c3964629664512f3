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

// Kind is what the engine must know of the kind of owner that it serves.
type Kind interface {
	// Traits returns what is fixed for the kind.
	Traits() Traits
	// Informer returns the shared informer of the kind's objects, which is
	// indexed by namespace.
	Informer() cache.SharedIndexInformer
	// Owner reads an object of the kind. It fails on one whose selector cannot
	// be understood, which no retry will mend.
	Owner(object any) (Owner, error)
	// Live reads an owner from the API server, past the cache.
	Live(ctx context.Context, namespace, name string) (Owner, error)
	// UpdateStatus writes status on top of owner, whose resourceVersion guards
	// the write, and returns the new resourceVersion.
	UpdateStatus(ctx context.Context, owner Owner, status Status) (resourceVersion string, err error)
	// Siblings returns the UIDs of the cached owners, this one included, that
	// have the same controller; nothing for one that stands alone.
	Siblings(owner Owner) ([]types.UID, error)
}

// Traits are the differences between kinds that are plain values.
type Traits struct {
	// GVK is the kind as pods name it in their controllerRef.
	GVK schema.GroupVersionKind
	// Resource is the plural by which its writes are remembered.
	Resource string
	// Queue is the name of the work queue in metrics.
	Queue string
	// EventSource is the component that events come from.
	EventSource string
	// ReadsOwnWrites makes a sync wait until the caches show what the
	// controller last wrote for the owner.
	ReadsOwnWrites bool
	// CountsTerminating says that the status has terminatingReplicas.
	CountsTerminating bool
}

// Owner is what the engine needs of a ReplicaSet or a ReplicationController.
// What it points to is shared with a cache: read only.
type Owner struct {
	// Object is the object itself.
	Object podcontrol.Owner
	// Replicas is the number of pods wanted.
	Replicas int
	// MinReady is how long a pod must be ready to count as available.
	MinReady time.Duration
	// Selector matches the owner's pods. An empty one matches nothing.
	Selector labels.Selector
	// Template is what pods are made of.
	Template *corev1.PodTemplateSpec
	// Status is what the object reports.
	Status Status
}

// ID names the owner for its lifetime.
func (o Owner) ID() ownership.ID { return ownership.IDOf(o.Object) }

// Terminating reports whether the owner is being deleted.
func (o Owner) Terminating() bool { return o.Object.GetDeletionTimestamp() != nil }

// Status is the status of a ReplicaSet or a ReplicationController.
type Status struct {
	Replicas           int32
	FullyLabeled       int32
	Ready              int32
	Available          int32
	Terminating        *int32 // nil where the kind does not count it
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
