package manager

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/deployment"
	"github.com/kube-gauntlet/gauntlet/controllers/endpoints"
	"github.com/kube-gauntlet/gauntlet/controllers/replicaset"
	"github.com/kube-gauntlet/gauntlet/controllers/replication"
)

// controller is a running controller, such as *deployment.Controller.
type controller interface {
	// Run runs the controller until the caller closes the channel drain. It returns when the
	// current syncs have finished. If the caller cancels ctx, Run aborts the current syncs.
	Run(ctx context.Context, drain <-chan struct{}, workers int)
	// HasSynced reports whether all event handlers of the controller have received their initial
	// lists.
	HasSynced() bool
}

// controllerContext contains what every controller needs: a client, the informers, events and
// options.
type controllerContext struct {
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	events    func(component string) record.EventRecorder
	options   *Options
}

// controllerDescriptor says how to build a controller, and how many workers it gets.
type controllerDescriptor struct {
	name string
	// workers returns the number of worker goroutines that the options set for this controller. It is
	// also the maximum number of concurrent syncs.
	workers func(*Options) int
	build   func(context.Context, controllerContext) (controller, error)
}

// catalog lists all controllers of this binary, and says how to build each of them.
var catalog = []controllerDescriptor{
	{"replicationcontroller-controller", func(o *Options) int { return o.ConcurrentRCSyncs }, buildReplication},
	{"replicaset-controller", func(o *Options) int { return o.ConcurrentReplicaSetSyncs }, buildReplicaSet},
	{"deployment-controller", func(o *Options) int { return o.ConcurrentDeploymentSyncs }, buildDeployment},
	{"endpoints-controller", func(o *Options) int { return o.ConcurrentEndpointSyncs }, buildEndpoints},
}

// ControllerNames returns the names that the flag --controllers accepts.
func ControllerNames() []string {
	names := make([]string, len(catalog))
	for i, e := range catalog {
		names[i] = e.name
	}
	return names
}

func buildReplication(ctx context.Context, env controllerContext) (controller, error) {
	return buildEngine(ctx, env, replication.Controllers(env.client, env.informers.Core().V1().ReplicationControllers()))
}

func buildReplicaSet(ctx context.Context, env controllerContext) (controller, error) {
	kind, err := replicaset.ReplicaSets(env.client, env.informers.Apps().V1().ReplicaSets())
	if err != nil {
		return nil, err
	}
	return buildEngine(ctx, env, kind)
}

// buildEngine builds a replicaset.Controller for one kind of owners: ReplicaSets or
// ReplicationControllers. Both kinds share the sync loop of this type.
func buildEngine(ctx context.Context, env controllerContext, kind replicaset.Kind) (controller, error) {
	return replicaset.New(ctx, replicaset.Config{
		Kind:   kind,
		Client: env.client,
		Pods:   env.informers.Core().V1().Pods().Informer(),
		Events: env.events(kind.Properties().EventSource),
		Clock:  clock.RealClock{},
		Burst:  replicaset.Burst,
	})
}

func buildDeployment(ctx context.Context, env controllerContext) (controller, error) {
	apps := env.informers.Apps().V1()
	return deployment.New(ctx, deployment.Config{
		Client:      env.client,
		Deployments: apps.Deployments().Informer(),
		ReplicaSets: apps.ReplicaSets().Informer(),
		Pods:        env.informers.Core().V1().Pods().Informer(),
		Events:      env.events(deployment.EventSource),
		Clock:       clock.RealClock{},
	})
}

func buildEndpoints(ctx context.Context, env controllerContext) (controller, error) {
	core := env.informers.Core().V1()
	return endpoints.New(ctx, endpoints.Config{
		Client:      env.client,
		Services:    core.Services().Informer(),
		Pods:        core.Pods().Informer(),
		Endpoints:   core.Endpoints().Informer(),
		Events:      env.events(endpoints.EventSource),
		BatchPeriod: env.options.EndpointUpdatesBatchPeriod,
	})
}
