// Package deployment implements the Deployment controller. The controller creates a ReplicaSet for
// each new pod template. It then moves the replicas from the old ReplicaSets to the new one. It
// keeps the limits maxSurge and maxUnavailable, and reports progress in conditions and events.
//
// These files decide what to do, and send no API requests:
//
//   - rolling.go and recreate.go decide the next step of a rollout.
//   - scale.go distributes a change of replicas over the ReplicaSets.
//   - newset.go finds or builds the new ReplicaSet.
//   - history.go selects old ReplicaSets to delete.
//   - progress.go computes the condition Progressing.
//
// The file sync.go carries out these decisions. The files sets.go, rollback.go and
// updatestatus.go send the API requests.
//
// The controller never creates or deletes pods. The ReplicaSet controller in package
// replicaset creates and deletes pods.
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

// EventSource is the source component in the events that the Deployment controller emits.
const EventSource = "deployment-controller"

// queueName is the name of the controller's work queue in metrics and logs. The other two constants
// are the resource names of Deployments and ReplicaSets.
const (
	queueName           = "deployment"
	deploymentsResource = "deployments"
	replicaSetsResource = "replicasets"
)

// gvk is the group, version and kind of Deployments. The controller writes it to the
// controllerRefs of ReplicaSets.
var gvk = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Config contains the dependencies of a Controller. Every field is required.
type Config struct {
	// Client sends the controller's requests to the API server. They read and write Deployments
	// and ReplicaSets.
	Client kubernetes.Interface
	// Deployments, ReplicaSets and Pods are the shared informers of these three resources.
	Deployments cache.SharedIndexInformer
	ReplicaSets cache.SharedIndexInformer
	Pods        cache.SharedIndexInformer
	// Events emits the controller's events about Deployments.
	Events record.EventRecorder
	// Clock provides the current time. Tests use a fake clock.
	Clock clock.PassiveClock
}

// Controller reconciles Deployments: it runs rollouts, scales ReplicaSets and writes the status.
type Controller struct {
	client           kubernetes.Interface
	deployments      cache.Indexer
	ownerLookup      ownership.OwnerLookup // finds the Deployment of a ReplicaSet
	replicaSets      cache.Indexer
	pods             cache.Indexer
	synced           []cache.InformerSynced
	events           record.EventRecorder
	clock            clock.PassiveClock
	replicaSetWrites *ownwrites.Tracker // this controller's own writes to ReplicaSets
	deploymentWrites *ownwrites.Tracker // this controller's own writes to Deployments
	loop             *workloop.Loop
	logger           klog.Logger // for event handlers, which get no context
}

// New returns a Controller. It adds event handlers and indexes to the informers in config. Start
// these informers only after New has returned.
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

// Run syncs Deployments with the given number of workers. The workers start when HasSynced returns
// true. After the caller closes the channel drain, the workers finish their current syncs, and Run
// returns. If the caller cancels ctx, Run aborts the current syncs.
func (c *Controller) Run(ctx context.Context, drain <-chan struct{}, workers int) {
	c.loop.Run(ctx, drain, c.synced, workers)
}
