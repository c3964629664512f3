// Package replicaset implements the ReplicaSet controller. Its sync loop works for every resource
// that maintains a number of pods of one template. Package replication uses this sync loop for
// ReplicationControllers. In this package, an owner is a ReplicaSet or a ReplicationController.
//
// The controller adopts and releases pods. One sync creates at most 500 pods, with slow start, or
// deletes at most 500 pods. Expectations prevent the controller from repeating creates and deletes
// while its cache is stale. A sync of a ReplicaSet does nothing while the caches lack the
// controller's own writes. It is then retried later; see Properties.ReadsOwnWrites.
//
// The files plan.go and rank.go decide what to do and send no API requests. The files sync.go and
// status.go carry out these decisions. The file replicasets.go reads ReplicaSets from the API
// server and writes their status.
//
// The controller does not schedule, run or garbage-collect pods. It never deletes failed pods,
// and never deletes pods that another object controls.
package replicaset

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/expectations"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownwrites"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podcontrol"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// podsResource is the resource name of pods.
const podsResource = "pods"

// Config contains the dependencies of a Controller. Every field is required.
type Config struct {
	// Kind is the implementation for the kind of the owners: ReplicaSet or
	// ReplicationController.
	Kind Kind
	// Client creates, patches and deletes pods.
	Client kubernetes.Interface
	// Pods is the shared informer of pods.
	Pods cache.SharedIndexInformer
	// Events emits the controller's events about owners.
	Events record.EventRecorder
	// Clock provides the current time. Tests use a fake clock.
	Clock clock.PassiveClock
	// Burst is the maximum number of pods that one sync creates or deletes. Outside of tests,
	// its value is the constant Burst.
	Burst int
}

// Controller reconciles the owners of one kind: all ReplicaSets, or all ReplicationControllers.
type Controller struct {
	kind         Kind
	traits       Properties
	owners       cache.Indexer
	ownerLookup  ownership.OwnerLookup // finds the owner of a pod, or owners that could adopt the pod
	pods         cache.Indexer
	synced       []cache.InformerSynced
	control      *podcontrol.Control
	expectations *expectations.Tracker
	writes       *ownwrites.Tracker
	loop         *workloop.Loop
	clock        clock.PassiveClock
	burst        int
	logger       klog.Logger // for event handlers, which get no context
}

// New returns a Controller. It adds event handlers and indexes to the informers in config. Start
// these informers only after New has returned.
func New(ctx context.Context, config Config) (*Controller, error) {
	if err := childindex.Add(config.Pods); err != nil {
		return nil, err
	}
	owners, pods := config.Kind.Informer(), config.Pods
	traits := config.Kind.Properties()
	c := &Controller{
		kind:   config.Kind,
		traits: traits,
		owners: owners.GetIndexer(),
		ownerLookup: ownership.OwnerLookup{
			Cache: owners.GetIndexer(),
			Kind:  traits.GVK.Kind,
			Selector: func(object any) (labels.Selector, error) {
				owner, err := config.Kind.Owner(object)
				return owner.Selector, err
			},
		},
		pods:    pods.GetIndexer(),
		control: podcontrol.New(config.Client, config.Events),
		clock:   config.Clock,
		burst:   config.Burst,
		logger:  klog.LoggerWithValues(klog.FromContext(ctx), "controller", traits.Queue),
	}
	c.expectations = expectations.New(config.Clock, func(resourceVersion string) bool {
		return ownwrites.Reached(c.pods, resourceVersion)
	})
	c.writes = ownwrites.New(map[string]ownwrites.Cache{podsResource: c.pods, traits.Resource: c.owners})
	c.loop = workloop.New(traits.Queue, c.sync)
	// Add the event handlers last: the informers may call them from now on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(owners, pods)...)
	return c, err
}

// HasSynced reports whether all event handlers of the controller have received their initial
// lists.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run syncs owners with the given number of workers. The workers start when HasSynced returns true.
// After the caller closes the channel drain, the workers finish their current syncs, and Run
// returns. If the caller cancels ctx, Run aborts the current syncs.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
