// Package endpoints implements the Endpoints controller. For every Service with a
// selector, it writes the Endpoints object of the same name, with the ready and
// not-ready addresses for each port of the Service.
//
// The controller writes addresses of one IP family in canonical subsets, at most 1000
// per object. It writes only changes, and only if its cache contains its own last
// write. It deletes the Endpoints of deleted Services. publish.go, pack.go,
// truncate.go and plan.go make decisions and call no API; sync.go carries them out.
//
// The controller does not write EndpointSlices. It never changes the Endpoints of a
// Service without a selector, or leader-election records. It ignores Endpoints without
// a Service that are created while it is running.
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

// Config holds what a Controller needs. Every field except BatchPeriod is required.
type Config struct {
	// Client writes Endpoints, and reads Services and Endpoints from the API server.
	Client kubernetes.Interface
	// Services, Pods and Endpoints are the shared informers of these resources.
	Services  cache.SharedIndexInformer
	Pods      cache.SharedIndexInformer
	Endpoints cache.SharedIndexInformer
	// Events records events about Endpoints.
	Events record.EventRecorder
	// BatchPeriod is how long Endpoints updates wait after a pod change, so that later
	// changes are written together. Service changes do not wait.
	BatchPeriod time.Duration
}

// Controller syncs the Endpoints of Services.
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
	// awaitingCache holds the keys whose last sync found that the cache does not
	// contain the last write yet. The informer event of that write enqueues such a key.
	awaitingCache sync.Map
	// failedWrites holds the keys whose last write returned an error. The write may
	// still have succeeded, so the cache may be stale.
	failedWrites sync.Map
	// writeDurations holds the duration of the last write of each key, from which
	// batchDelay computes the delay.
	writeDurations sync.Map
	loop           *workloop.Loop
	logger         klog.Logger // for event handlers, which have no context
}

// New returns a Controller and adds its event handlers to the informers, which must
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
	// Add the event handlers last: they may be called from here on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	return c, err
}

// HasSynced reports whether every event handler has received its initial list.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run syncs Services with the given number of workers until all workers have stopped.
// The workers start once HasSynced is true. Closing drain lets workers finish their
// current syncs; canceling ctx aborts the syncs.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
