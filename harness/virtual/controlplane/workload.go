package controlplane

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// workloadWorkers is the number of workers of each controller of kube-controller-manager that the
// scenario does not test. It is kube-controller-manager's default.
const workloadWorkers = 5

// workloadController is a controller of kube-controller-manager. Run returns when ctx is canceled.
type workloadController interface {
	Run(ctx context.Context, workers int)
}

// newWorkloadControllers returns those default controllers of gauntlet that are not under test. If
// a scenario names only some of them, or tests an operator, the control plane runs the others. If
// the parameter tested is nil, all default controllers are under test.
func newWorkloadControllers(ctx context.Context, client kubernetes.Interface, typed informers.SharedInformerFactory, tested []kube.Controller) ([]workloadController, error) {
	names := kube.NamesOf(kube.OrDefault(tested))
	var all []workloadController
	for _, name := range kube.DefaultControllers() {
		if slices.Contains(names, name) {
			continue
		}
		c, err := newWorkloadController(ctx, name, client, typed)
		if err != nil {
			return nil, fmt.Errorf("creating %s: %w", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// newWorkloadController returns the controller of kube-controller-manager with the given name.
func newWorkloadController(ctx context.Context, name string, client kubernetes.Interface, typed informers.SharedInformerFactory) (workloadController, error) {
	apps, core := typed.Apps().V1(), typed.Core().V1()
	switch name {
	case "replicationcontroller-controller":
		return replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), client, replication.BurstReplicas), nil
	case "replicaset-controller":
		return replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas), nil
	case "deployment-controller":
		return deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	case "endpoints-controller":
		return endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, 0), nil
	}
	return nil, fmt.Errorf("found the controller %q; expected one of %v", name, kube.DefaultControllers())
}
