// Package replicaset keeps the number of pods that a ReplicaSet asks for. Its
// engine serves any kind of owner that wants n pods of one template; package
// replication runs ReplicationControllers on it.
//
// What it promises is observable at the API: reading its own writes,
// expectations, adoption and release, slow-start creation in bursts of 500,
// the order of deletion, status. Decisions are in plan.go and rank.go and take
// and return values; sync.go carries them out.
//
// It does not schedule, run or garbage-collect pods, and it never deletes pods
// that have failed or that another controller owns.
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

// podsResource is the name under which writes of pods are remembered.
const podsResource = "pods"

// Config is what a Controller is made of. Every field is required.
type Config struct {
	// Kind is the kind of owner to serve.
	Kind Kind
	// Client writes pods.
	Client kubernetes.Interface
	// Pods is the shared informer of all pods.
	Pods cache.SharedIndexInformer
	// Events receives what users are told.
	Events record.EventRecorder
	// Clock gives the time.
	Clock clock.PassiveClock
	// Burst is the most pods created or deleted by one sync; normally Burst.
	Burst int
}

// Controller is the engine at work on one kind.
type Controller struct {
	kind         Kind
	traits       Traits
	owners       cache.Indexer
	ownerLookup  ownership.OwnerLookup // the same, as pods name and match them
	pods         cache.Indexer
	synced       []cache.InformerSynced
	control      *podcontrol.Control
	expectations *expectations.Tracker
	writes       *ownwrites.Tracker
	loop         *workloop.Loop
	clock        clock.PassiveClock
	burst        int
	logger       klog.Logger // of handlers, which have no context
}

// New returns a Controller that has its handlers on the informers, which must
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
	// Handlers come last: they may be called from here on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(owners, pods)...)
	return c, err
}

// HasSynced reports whether every handler has seen the whole of the first lists.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run serves owners with workers until all of those have stopped. Nothing is
// done before HasSynced. Closing drain lets workers finish the syncs that they
// are at; cancelling ctx aborts those.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
