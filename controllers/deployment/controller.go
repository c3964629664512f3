// Package deployment rolls Deployments out: it makes a ReplicaSet for each new
// pod template, moves replicas from the old ReplicaSets to the new one within
// the limits that the user sets, and tells how it goes.
//
// Every decision takes and returns values: what to roll in rolling.go and
// recreate.go, how to spread a change of scale in scale.go, which ReplicaSet is
// new and which are to be deleted in newset.go and history.go, what to say of
// progress in progress.go. sync.go carries them out, with the calls of sets.go
// and report.go.
//
// It never touches pods; package replicaset does.
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

// EventSource is the component that events come from.
const EventSource = "deployment-controller"

// Names of the work queue in metrics, and of the resources written.
const (
	queueName           = "deployment"
	deploymentsResource = "deployments"
	replicaSetsResource = "replicasets"
)

// gvk is the kind as ReplicaSets name it in their controllerRef.
var gvk = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Config is what a Controller is made of. Every field is required.
type Config struct {
	// Client writes ReplicaSets and Deployments.
	Client kubernetes.Interface
	// Deployments, ReplicaSets and Pods are the shared informers of all these.
	Deployments cache.SharedIndexInformer
	ReplicaSets cache.SharedIndexInformer
	Pods        cache.SharedIndexInformer
	// Events receives what users are told.
	Events record.EventRecorder
	// Clock gives the time.
	Clock clock.PassiveClock
}

// Controller serves Deployments.
type Controller struct {
	client           kubernetes.Interface
	deployments      cache.Indexer
	ownerLookup      ownership.OwnerLookup // the same, as ReplicaSets name and match them
	replicaSets      cache.Indexer
	pods             cache.Indexer
	synced           []cache.InformerSynced
	events           record.EventRecorder
	clock            clock.PassiveClock
	replicaSetWrites *ownwrites.Tracker // of ReplicaSets
	deploymentWrites *ownwrites.Tracker // of the Deployments themselves
	loop             *workloop.Loop
	logger           klog.Logger // of handlers, which have no context
}

// New returns a Controller that has its handlers on the informers, which must
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
	// Handlers come last: they may be called from here on.
	var err error
	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	return c, err
}

// HasSynced reports whether every handler has seen the whole of the first lists.
func (c *Controller) HasSynced() bool {
	return workloop.HasSynced(c.synced)
}

// Run serves Deployments with workers until all of those have stopped. Nothing
// is done before HasSynced. Closing drain lets workers finish the syncs that
// they are at; cancelling ctx aborts those.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
