// Package endpoints keeps, for every Service that selects pods, the Endpoints of
// the same name: which addresses serve which of its ports, and which of them are
// ready.
//
// What it promises is observable at the API: one IP family, canonical subsets,
// at most 1000 addresses, no write that says nothing new, none on top of a cache
// that lacks its own last one, and no Endpoints left behind by a Service that is
// gone. Decisions are in publish.go, pack.go, truncate.go and plan.go and take
// and return values; sync.go carries them out.
//
// It does not keep EndpointSlices, which have succeeded Endpoints, and it never
// touches the Endpoints of a Service without a selector, those that somebody
// made without any Service, or the record of a leader election.
package endpoints

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownwrites"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// Config is what a Controller is made of. Every field but BatchPeriod is
// required.
type Config struct {
	// Client writes Endpoints, and reads past the caches before deleting.
	Client kubernetes.Interface
	// Services, Pods and Endpoints are the shared informers of all of these.
	Services  cache.SharedIndexInformer
	Pods      cache.SharedIndexInformer
	Endpoints cache.SharedIndexInformer
	// Events receives what users are told.
	Events record.EventRecorder
	// BatchPeriod is how long after the change of a pod Endpoints are written,
	// so that the changes that follow are written with it. Changes of Services
	// do not wait.
	BatchPeriod time.Duration
}

// Controller is the Endpoints controller.
type Controller struct {
	client       kubernetes.Interface
	services     cache.Indexer
	pods         cache.Indexer
	endpoints    cache.Indexer
	events       record.EventRecorder
	batchPeriod  time.Duration
	synced       []cache.InformerSynced
	writes       *ownwrites.Tracker
	triggerTimes *triggerTimeTracker
	// awaitingCache holds the keys whose last sync found the cache to lack their own
	// last write.
	awaitingCache sync.Map
	// failedWrites holds the keys whose last write failed, as far as anybody here knows:
	// what there is now, the cache need not show.
	failedWrites sync.Map
	// writeDurations holds how long the last write under each key took.
	writeDurations sync.Map
	loop           *workloop.Loop
	logger         klog.Logger // of handlers, which have no context
}

// New returns a Controller that has its handlers on the informers, which must
// not be started yet.
func New(ctx context.Context, config Config) (*Controller, error) {
	if err := addServiceIndex(config.Services); err != nil {
		return nil, err
	}
	const queue = "endpoint"
	c := &Controller{
		client:       config.Client,
		services:     config.Services.GetIndexer(),
		pods:         config.Pods.GetIndexer(),
		endpoints:    config.Endpoints.GetIndexer(),
		events:       config.Events,
		batchPeriod:  config.BatchPeriod,
		triggerTimes: newTriggerTimeTracker(),
		logger:       klog.LoggerWithValues(klog.FromContext(ctx), "controller", queue),
	}
	c.writes = ownwrites.New(map[string]ownwrites.Cache{resource: c.endpoints})
	c.loop = workloop.New(queue, c.sync)
	// Handlers come last: they may be called from here on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	return c, err
}

// HasSynced reports whether every handler has seen the whole of the first lists.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run serves Services with workers until all of those have stopped. Nothing is
// done before HasSynced. Closing drain lets workers finish the syncs that they
// are at; cancelling ctx aborts those.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
