package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/tainteviction"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Kubelets = (*ControlPlane)(nil)

const (
	// nodeMonitorPeriod is the interval at which the node lifecycle controller looks at all nodes. The
	// embedded control plane has the same one.
	nodeMonitorPeriod = time.Second
	// nodeWait limits the time until a node is healthy again. nodePoll is the time between two reads of
	// the node.
	nodeWait, nodePoll = time.Minute, 100 * time.Millisecond
	// These are the defaults of kube-controller-manager for the eviction from lost nodes.
	evictionRate, secondaryEvictionRate = 0.1, 0.01
	largeClusterSize, unhealthyZone     = 50, 0.55
)

// nodeControllers are the controllers that act on lost nodes. Two of them are those of
// kube-controller-manager, for the lifecycle of nodes and for evictions because of taints. The third is
// the podCollector. They start when the first node is lost, because the periodic work of two of them takes CPU time.
//
// Simulated nodes send no heartbeats. The node lifecycle controller therefore never finds on its own
// that a node is lost; the fault that stops a kubelet marks the node. From then on, the controllers do
// what they do in a cluster: they taint the node, and evict and delete pods.
type nodeControllers struct {
	config *rest.Config
	once   sync.Once
	err    error // why they could not start
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// start starts the controllers. Later calls only return the error of the first one.
func (n *nodeControllers) start(ctx context.Context) error {
	n.once.Do(func() {
		ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
		n.err = n.run(ctx)
	})
	return n.err
}

// stop stops the controllers, and waits until they have ended.
func (n *nodeControllers) stop() {
	n.once.Do(func() {}) // a start that is in progress ends first, and no other follows
	if n.cancel != nil {
		n.cancel()
		n.group.Wait()
	}
}

func (n *nodeControllers) run(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	lifecycle, err := nodelifecycle.NewNodeLifecycleController(ctx, factory.Coordination().V1().Leases(), pods, nodes, newNoDaemonSets(), client,
		nodeMonitorPeriod, never, never, evictionRate, secondaryEvictionRate, largeClusterSize, unhealthyZone)
	if err != nil {
		return fmt.Errorf("creating the node lifecycle controller: %w", err)
	}
	eviction, err := tainteviction.New(ctx, client, pods, nodes, "taint-eviction-controller")
	if err != nil {
		return fmt.Errorf("creating the taint eviction controller: %w", err)
	}
	collector := newPodCollector(client, factory)
	n.group.Go(func() { lifecycle.Run(ctx) })
	n.group.Go(func() { eviction.Run(ctx) })
	n.group.Go(func() { collector.run(ctx) })
	factory.StartWithContext(ctx)
	n.group.Go(func() { <-ctx.Done(); factory.Shutdown() })
	return nil
}

// noDaemonSets is an informer that has no objects and is never started, because the API server does
// not serve DaemonSets.
type noDaemonSets struct{ cache.SharedIndexInformer }

func newNoDaemonSets() noDaemonSets {
	return noDaemonSets{cache.NewSharedIndexInformer(&cache.ListWatch{}, &appsv1.DaemonSet{}, never, cache.Indexers{})}
}

// HasSynced returns true, so that nothing waits for the objects.
func (n noDaemonSets) HasSynced() bool { return true }

// Informer returns the informer itself. Together with Lister, it implements the informer of client-go
// for DaemonSets.
func (n noDaemonSets) Informer() cache.SharedIndexInformer { return n }

// Lister returns a lister that lists nothing.
func (n noDaemonSets) Lister() appslisters.DaemonSetLister {
	return appslisters.NewDaemonSetLister(n.GetIndexer())
}

// PauseKubelet pauses the simulated kubelet of a node. It implements [cluster.Kubelets].
func (c *ControlPlane) PauseKubelet(ctx context.Context, node string) error {
	c.simulation.PauseKubelet(node)
	return c.nodeControllers.start(ctx)
}

// ResumeKubelet undoes [ControlPlane.PauseKubelet], and waits until the node is healthy.
func (c *ControlPlane) ResumeKubelet(ctx context.Context, node string) error {
	if err := c.simulation.ResumeKubelet(ctx, node); err != nil {
		return err
	}
	return cluster.AwaitNode(ctx, c, node, nodePoll, nodeWait)
}

// Register creates the named node again after a fault has deleted it, and waits until the node is
// healthy. It implements [cluster.Kubelets].
func (c *ControlPlane) Register(ctx context.Context, node string) error {
	if err := c.simulation.Register(ctx, node); err != nil {
		return err
	}
	return cluster.AwaitNode(ctx, c, node, nodePoll, nodeWait)
}

// nodeDeleted starts the controllers that remove pods from a deleted node.
func (c *ControlPlane) nodeDeleted(ctx context.Context) {
	if err := c.nodeControllers.start(ctx); err != nil {
		klog.ErrorS(err, "The controllers of nodes could not start")
	}
}
