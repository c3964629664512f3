// Package replicaset implements the ReplicaSet controller. Its sync loop works for any
// kind that wants n pods of one template; package replication uses it for
// ReplicationControllers.
//
// The controller defers a sync until its caches contain its own writes. It uses
// expectations, adopts and releases pods, and creates pods with slow start, at most 500
// per sync. plan.go and rank.go make decisions and call no API; sync.go carries the
// decisions out.
//
// The controller does not schedule, run or garbage-collect pods. It never deletes
// failed pods, nor pods that another controller controls.
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

// podsResource is the resource name of pods, as package ownwrites uses it.
const podsResource = "pods"

// Config holds what a Controller needs. Every field is required.
type Config struct {
	// Kind is the kind of the owners to sync.
	Kind Kind
	// Client creates, patches and deletes pods.
	Client kubernetes.Interface
	// Pods is the shared informer of all pods.
	Pods cache.SharedIndexInformer
	// Events records events about owners.
	Events record.EventRecorder
	// Clock provides the current time.
	Clock clock.PassiveClock
	// Burst is the largest number of pods that one sync creates or deletes, normally
	// the constant Burst.
	Burst int
}

// Controller syncs the owners of one kind.
type Controller struct {
	kind         Kind
	traits       Traits
	owners       cache.Indexer
	ownerLookup  ownership.OwnerLookup // finds owners for pods
	pods         cache.Indexer
	synced       []cache.InformerSynced
	control      *podcontrol.Control
	expectations *expectations.Tracker
	writes       *ownwrites.Tracker
	loop         *workloop.Loop
	clock        clock.PassiveClock
	burst        int
	logger       klog.Logger // for event handlers, which have no context
}

// New returns a Controller and adds its event handlers to the informers, which must
// not be started yet.
func New(ctx context.Context, config Config) (*Controller, error) {
	if err := childindex.Add(config.Pods); err != nil {
		return nil, err
	}
	owners, pods := config.Kind.Informer(), config.Pods
	traits := config.Kind.Traits()
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
	// Add the event handlers last: they may be called from here on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(owners, pods)...)
	return c, err
}

// HasSynced reports whether every event handler has received its initial list.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run syncs owners with the given number of workers until all workers have stopped.
// The workers start once HasSynced is true. Closing drain lets workers finish their
// current syncs; canceling ctx aborts the syncs.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
