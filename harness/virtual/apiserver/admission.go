package apiserver

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
)

// quotaWorkers is the number of goroutines that check requests against quotas. kube-apiserver has
// the same number.
const quotaWorkers = 5

// admissionPlugins contains admission plugins of kube-apiserver. Some refuse requests: for
// terminating namespaces, for missing ServiceAccounts of pods, for ValidatingAdmissionPolicies, and
// for ResourceQuotas. The others set fields of pods and nodes: ServiceAccount, priority, tolerations
// and the taint of a new node.
type admissionPlugins struct {
	chain     admission.Interface             // all plugins, one after the other
	informers informers.SharedInformerFactory // caches of the plugins
}

// newAdmissionPlugins creates the admission plugins. They read the API server's objects through
// the given client configuration. The plugins end when ctx ends.
func newAdmissionPlugins(ctx context.Context, config *rest.Config, client kubernetes.Interface) (*admissionPlugins, error) {
	namespaces, err := lifecycle.NewLifecycle(sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem))
	if err != nil {
		return nil, err
	}
	accounts := serviceaccount.NewServiceAccount()
	accounts.MountServiceAccountToken = false // no container uses the token, and pods stay small
	policies, err := validating.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	quotaDefaults, err := resourcequota.LoadConfiguration(nil)
	if err != nil {
		return nil, err
	}
	quotas, err := resourcequota.NewResourceQuota(quotaDefaults, quotaWorkers)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	caches := informers.NewSharedInformerFactory(client, 0)
	quotaConfiguration, err := NewQuotaConfiguration(nil, caches)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	initialize := initializer.New(client, dynamicClient, caches, authorizer, feature.DefaultFeatureGate,
		compatibility.DefaultBuildEffectiveVersion(), ctx.Done(), mapper)
	plugins := []admission.Interface{ // in kube-apiserver's order
		namespaces, accounts, nodetaint.NewPlugin(), priority.NewPlugin(),
		defaulttolerationseconds.NewDefaultTolerationSeconds(), policies, quotas,
	}
	for _, plugin := range plugins {
		initialize.Initialize(plugin)
	}
	quotas.SetQuotaConfiguration(quotaConfiguration)
	for _, plugin := range plugins {
		if err := admission.ValidateInitialization(plugin); err != nil {
			return nil, fmt.Errorf("starting the admission plugins: %w", err)
		}
	}
	return &admissionPlugins{admission.NewChainHandler(plugins...), caches}, nil
}

// start starts the plugins' caches, which end with the context serving. It waits until the caches are
// synced or ctx ends. The API server must already serve requests.
func (p *admissionPlugins) start(ctx, serving context.Context) error {
	p.informers.Start(serving.Done())
	for kind, synced := range p.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the admission plugins' cache of %v did not sync: %w", kind, context.Cause(ctx))
		}
	}
	return nil
}

// NewQuotaConfiguration returns the rules by which ResourceQuotas count objects. The function
// lister may be nil if the caller only checks requests.
func NewQuotaConfiguration(lister quota.ListerForResourceFunc, caches informers.SharedInformerFactory) (quota.Configuration, error) {
	evaluators, err := core.NewEvaluators(lister, caches, func(resource schema.GroupVersionResource) bool {
		return slices.Contains(versions, resource.GroupVersion())
	})
	if err != nil {
		return nil, err
	}
	return generic.NewConfiguration(evaluators, install.DefaultIgnoredResources()), nil
}
