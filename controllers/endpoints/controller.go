// Package endpoints implements the Endpoints controller. For every Service with a selector, it
// writes the Endpoints object with the same name. This object has the ready and the not-ready
// addresses for each port of the Service.
//
// Each Endpoints object has sorted subsets, with at most 1000 addresses of one IP family. The
// controller writes an object only if the object would change. It also waits until the cache
// contains the controller's own last write. It deletes the Endpoints of deleted Services.
//
// The files publish.go, pack.go, truncate.go and plan.go decide what to write, and send no API
// requests. The file sync.go sends the API requests.
//
// The controller does not write EndpointSlices. It never changes leader-election records, or
// the Endpoints of a Service without a selector. While it runs, it ignores new Endpoints
// objects that have no Service.
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

// Config contains the dependencies of a Controller. Every field except BatchPeriod is
// required.
type Config struct {
	// Client sends the controller's requests to the API server. They write Endpoints, and read
	// Endpoints and Services.
	Client kubernetes.Interface
	// Services, Pods and Endpoints are the shared informers of these three resources.
	Services  cache.SharedIndexInformer
	Pods      cache.SharedIndexInformer
	Endpoints cache.SharedIndexInformer
	// Events emits the controller's events about Endpoints.
	Events record.EventRecorder
	// BatchPeriod is the time from a pod change to the update of the Endpoints. One update
	// contains all pod changes within this time. Changes of a Service do not wait.
	BatchPeriod time.Duration
}

// Controller keeps the Endpoints of Services up to date.
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
	// awaitingCache contains the keys whose last sync did nothing because the cache was stale.
	// The cache lacked the controller's own last write. The informer event of that write
	// enqueues the key.
	awaitingCache sync.Map
	// failedWrites contains the keys whose last write returned an error. The write may have
	// succeeded nevertheless, so the next sync reads the Endpoints from the API server.
	failedWrites sync.Map
	// writeDurations maps a key to the duration of the last write of this key's Endpoints. The
	// method batchDelay reads the durations.
	writeDurations sync.Map
	loop           *workloop.Loop
	logger         klog.Logger // for event handlers, which get no context
}

// New returns a Controller. It adds event handlers and indexes to the informers in config. Start
// these informers only after New has returned.
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
	c.loop.BeforeWork = c.enqueueLeftovers
	// Add the event handlers last: the informers may call them from now on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	return c, err
}

// HasSynced reports whether all event handlers of the controller have received their initial
// lists.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run syncs Services with the given number of workers. The workers start when HasSynced returns
// true. After the caller closes the channel drain, the workers finish their current syncs, and Run
// returns. If the caller cancels ctx, Run aborts the current syncs.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
