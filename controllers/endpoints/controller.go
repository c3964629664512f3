// Package endpoints implements the Endpoints controller. For every Service with a selector, it
// writes the Endpoints object with the same name. This object has the ready and the not-ready
// addresses for each port of the Service.
//
// The controller writes addresses of one IP family, at most 1000 per object, in sorted
// subsets. It writes only if something has changed, and if its cache contains its own last
// write. It deletes the Endpoints of deleted Services. The files publish.go, pack.go,
// truncate.go and plan.go decide what to write, and make no API calls. The file sync.go makes
// the API calls.
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
	// Client writes Endpoints. It also reads Services and Endpoints from the API server.
	Client kubernetes.Interface
	// Services, Pods and Endpoints are the shared informers of these resources.
	Services  cache.SharedIndexInformer
	Pods      cache.SharedIndexInformer
	Endpoints cache.SharedIndexInformer
	// Events records events about Endpoints.
	Events record.EventRecorder
	// BatchPeriod is the time from a pod change to the update of the Endpoints. Pod changes
	// within this time are written together. Changes of Services do not wait.
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
	// awaitingCache contains the keys whose last sync found that the cache lacks the
	// controller's last write. The informer event of that write enqueues these keys.
	awaitingCache sync.Map
	// failedWrites contains the keys whose last write returned an error. The write may have
	// succeeded nevertheless, so the cache may be stale.
	failedWrites sync.Map
	// writeDurations maps a key to the duration of its last write. The method batchDelay uses
	// it.
	writeDurations sync.Map
	loop           *workloop.Loop
	logger         klog.Logger // for event handlers, which get no context
}

// New returns a Controller. It adds event handlers and indexes to the informers, which must
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
	// Add the event handlers last: the informers may call them from here on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	return c, err
}

// HasSynced reports whether all event handlers have received their initial lists.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run syncs Services with the given number of workers. The workers start when HasSynced is
// true. After drain is closed, the workers finish their current syncs, and Run returns. If ctx
// is canceled, Run aborts the syncs.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
