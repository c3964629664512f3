// Package deployment implements the Deployment controller. It creates a ReplicaSet for
// each new pod template and moves replicas from the old ReplicaSets to the new one. It
// respects maxSurge and maxUnavailable and reports progress in conditions and events.
//
// The decisions are functions of values and call no API:
//
//   - rolling.go and recreate.go decide the next step of a rollout.
//   - scale.go distributes a change of replicas over the ReplicaSets.
//   - newset.go finds or builds the new ReplicaSet.
//   - history.go selects old ReplicaSets to delete.
//   - progress.go computes the condition Progressing.
//
// sync.go carries the decisions out, with the API calls in sets.go, rollback.go and
// updatestatus.go.
//
// The controller never creates or deletes pods; the ReplicaSet controller in package
// replicaset does that.
package deployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownwrites"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// EventSource is the source component of events.
const EventSource = "deployment-controller"

// queueName is the name of the work queue in metrics. The other constants are the
// resource names under which package ownwrites records writes.
const (
	queueName           = "deployment"
	deploymentsResource = "deployments"
	replicaSetsResource = "replicasets"
)

// gvk is the group, version and kind used in the controllerRefs of ReplicaSets.
var gvk = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Config holds what a Controller needs. Every field is required.
type Config struct {
	// Client writes ReplicaSets and Deployments.
	Client kubernetes.Interface
	// Deployments, ReplicaSets and Pods are the shared informers of these resources.
	Deployments cache.SharedIndexInformer
	ReplicaSets cache.SharedIndexInformer
	Pods        cache.SharedIndexInformer
	// Events records events about Deployments.
	Events record.EventRecorder
	// Clock provides the current time.
	Clock clock.PassiveClock
}

// Controller syncs Deployments.
type Controller struct {
	client           kubernetes.Interface
	deployments      cache.Indexer
	ownerLookup      ownership.OwnerLookup // finds Deployments for ReplicaSets
	replicaSets      cache.Indexer
	pods             cache.Indexer
	synced           []cache.InformerSynced
	events           record.EventRecorder
	clock            clock.PassiveClock
	replicaSetWrites *ownwrites.Tracker // writes to ReplicaSets
	deploymentWrites *ownwrites.Tracker // writes to Deployments
	loop             *workloop.Loop
	logger           klog.Logger // for event handlers, which have no context
}

// New returns a Controller and adds its event handlers to the informers, which must
// not be started yet.
func New(ctx context.Context, config Config) (*Controller, error) {
	for _, informer := range []cache.SharedIndexInformer{config.ReplicaSets, config.Pods} {
		if err := childindex.Add(informer); err != nil {
			return nil, err
		}
	}
	c := &Controller{
		client:      config.Client,
		deployments: config.Deployments.GetIndexer(),
		ownerLookup: ownership.OwnerLookup{
			Cache: config.Deployments.GetIndexer(),
			Kind:  gvk.Kind,
			Selector: func(object any) (labels.Selector, error) {
				return ownership.SelectorOf(object.(*appsv1.Deployment).Spec.Selector)
			},
		},
		replicaSets: config.ReplicaSets.GetIndexer(),
		pods:        config.Pods.GetIndexer(),
		events:      config.Events,
		clock:       config.Clock,
		logger:      klog.LoggerWithValues(klog.FromContext(ctx), "controller", queueName),
	}
	c.replicaSetWrites = ownwrites.New(map[string]ownwrites.Cache{replicaSetsResource: c.replicaSets})
	c.deploymentWrites = ownwrites.New(map[string]ownwrites.Cache{deploymentsResource: c.deployments})
	c.loop = workloop.New(queueName, c.sync)
	// Add the event handlers last: they may be called from here on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	return c, err
}

// HasSynced reports whether every event handler has received its initial list.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run syncs Deployments with the given number of workers until all workers have
// stopped. The workers start once HasSynced is true. Closing drain lets workers finish
// their current syncs; canceling ctx aborts the syncs.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
