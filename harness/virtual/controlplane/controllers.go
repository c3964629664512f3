package controlplane

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

const (
	// gcWorkers and quotaWorkers are the numbers of workers of the garbage collector and of the quota
	// controller. kube-controller-manager has the same numbers.
	gcWorkers, quotaWorkers = 20, 5
	// never is the interval of periodic work that is unnecessary here, such as a resync of an
	// informer.
	never = 1000 * time.Hour
	// quotaResync is the interval at which the quota controller counts all objects again. It is
	// kube-controller-manager's default. The count corrects status.used after a create that the API
	// server admitted but did not execute.
	quotaResync = 5 * time.Minute
	// syncTimeout is the maximum time until the caches of a controller are synced.
	syncTimeout = 30 * time.Second
)

// notCollected lists resources whose objects have neither owners nor dependents in a run. The
// garbage collector does not watch them, and the quota controller does not count them.
var notCollected = map[schema.GroupResource]struct{}{
	{Resource: "events"}: {}, {Resource: "nodes"}: {}, {Resource: "namespaces"}: {}, {Resource: "serviceaccounts"}: {},
	{Group: coordination, Resource: "leases"}: {},
	{Group: rbac, Resource: "roles"}:          {}, {Group: rbac, Resource: "rolebindings"}: {},
	{Group: rbac, Resource: "clusterroles"}: {}, {Group: rbac, Resource: "clusterrolebindings"}: {},
	{Resource: "resourcequotas"}:                                {},
	{Group: admission, Resource: "validatingadmissionpolicies"}: {}, {Group: admission, Resource: "validatingadmissionpolicybindings"}: {},
}

const (
	coordination = "coordination.k8s.io"
	rbac         = "rbac.authorization.k8s.io"
	admission    = "admissionregistration.k8s.io"
)

// startControllers starts controllers of the control plane that are not under test, such as the
// garbage collector. The parameter tested contains the controllers under test; nil means the
// default ones. The caller must call the returned function stop, also after an error. The
// function is nil if nothing was started.
func startControllers(ctx context.Context, config *rest.Config, tested []kube.Controller) (stop func(), err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	stop = func() { cancel(); group.Wait() }
	typed := informers.NewSharedInformerFactory(client, never)
	partial := metadatainformer.NewSharedInformerFactory(metadataClient, never)
	started := make(chan struct{})

	shared := informerfactory.NewInformerFactory(typed, partial)
	resources := func() ([]*metav1.APIResourceList, error) {
		return client.Discovery().ServerPreferredNamespacedResources()
	}
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())), notCollected, shared, started)
	if err != nil {
		return stop, fmt.Errorf("creating the garbage collector: %w", err)
	}
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), typed.Core().V1().ServiceAccounts(), typed.Core().V1().Namespaces(),
		client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return stop, fmt.Errorf("creating the controller of default ServiceAccounts: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, client, metadataClient, resources, typed.Core().V1().Namespaces(), never, corev1.FinalizerKubernetes)
	quotas, err := newQuotaController(ctx, client, typed, &resourcequota.ControllerOptions{
		DiscoveryFunc: resources, InformerFactory: shared, InformersStarted: started,
	})
	if err != nil {
		return stop, fmt.Errorf("creating the quota controller: %w", err)
	}
	workload, err := newWorkloadControllers(ctx, client, typed, tested)
	if err != nil {
		return stop, err
	}

	for _, c := range workload {
		group.Go(func() { c.Run(ctx, workloadWorkers) })
	}
	group.Go(func() { collector.Sync(ctx, client.Discovery(), never) })
	group.Go(func() { collector.Run(ctx, gcWorkers, syncTimeout) })
	group.Go(func() { accounts.Run(ctx, 1) })
	group.Go(func() { namespaces.Run(ctx, 1) })
	group.Go(func() { quotas.Run(ctx, quotaWorkers) })
	typed.Start(ctx.Done())
	partial.Start(ctx.Done())
	close(started)
	typed.WaitForCacheSync(ctx.Done())
	return stop, nil
}

// newQuotaController creates the controller that counts the objects of a namespace in the status of
// its ResourceQuotas. The caller has set those fields of o that other controllers share.
func newQuotaController(ctx context.Context, client kubernetes.Interface, typed informers.SharedInformerFactory, o *resourcequota.ControllerOptions) (*resourcequota.Controller, error) {
	rules, err := apiserver.NewQuotaConfiguration(generic.ListerFuncForResourceFunc(typed.ForResource), typed)
	if err != nil {
		return nil, err
	}
	ignored := maps.Clone(notCollected)
	maps.Copy(ignored, rules.IgnoredResources())
	o.QuotaClient, o.ResourceQuotaInformer = client.CoreV1(), typed.Core().V1().ResourceQuotas()
	o.Registry, o.IgnoredResourcesFunc = generic.NewRegistry(rules.Evaluators()), func() map[schema.GroupResource]struct{} { return ignored }
	o.ResyncPeriod, o.ReplenishmentResyncPeriod = controller.StaticResyncPeriodFunc(quotaResync), controller.StaticResyncPeriodFunc(never)
	o.UpdateFilter = install.DefaultUpdateFilter()
	return resourcequota.NewController(ctx, o)
}
