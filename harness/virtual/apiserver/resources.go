package apiserver

import (
	"errors"
	"time"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
	policystore "k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy/storage"
	bindingstore "k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding/storage"
	deploymentstore "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"
	replicasetstore "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"
	leasestore "k8s.io/kubernetes/pkg/registry/coordination/lease/storage"
	configmapstore "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	endpointsstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	eventstore "k8s.io/kubernetes/pkg/registry/core/event/storage"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	rcstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	quotastore "k8s.io/kubernetes/pkg/registry/core/resourcequota/storage"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	accountstore "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
	budgetstore "k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget/storage"
	clusterrolestore "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/storage"
	clusterrolebindingstore "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/storage"
	rolestore "k8s.io/kubernetes/pkg/registry/rbac/role/storage"
	rolebindingstore "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/storage"
	prioritystore "k8s.io/kubernetes/pkg/registry/scheduling/priorityclass/storage"

	// These packages register the API versions in legacyscheme.
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
)

var (
	coreV1         = schema.GroupVersion{Version: "v1"}
	appsV1         = schema.GroupVersion{Group: "apps", Version: "v1"}
	coordinationV1 = schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	policyV1       = schema.GroupVersion{Group: "policy", Version: "v1"}
	rbacV1         = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	admissionV1    = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	eventsV1       = schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}
	schedulingV1   = schema.GroupVersion{Group: "scheduling.k8s.io", Version: "v1"}
	// versions lists the API groups that the API server serves, each in one version.
	versions = []schema.GroupVersion{coreV1, appsV1, coordinationV1, policyV1, rbacV1, admissionV1, eventsV1, schedulingV1}

	codecs     = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
	authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
)

// eventSeconds is the number of seconds for which the API server keeps an Event. It is
// kube-apiserver's default, one hour.
const eventSeconds = 3600

// group is one version of an API group, such as apps/v1, with the stores of its resources. The keys
// of the map stores are resources or subresources, such as "pods/status".
type group struct {
	version schema.GroupVersion
	root    string // first path segment of the URLs, "/api" or "/apis"
	stores  map[string]rest.Storage
}

// newGroups creates the registries of all resources. After an error, it also returns the groups
// that it has created, so that the caller can destroy them.
func newGroups(options *storageOptions) ([]group, error) {
	coreStores, err := newCoreStores(options)
	groups := []group{{coreV1, "/api", coreStores}}
	if err != nil {
		return groups, err
	}
	deployments, err := deploymentstore.NewStorage(options)
	if err != nil {
		return groups, err
	}
	replicaSets, err := replicasetstore.NewStorage(options)
	groups = append(groups, group{appsV1, "/apis", map[string]rest.Storage{
		"deployments": deployments.Deployment, "deployments/status": deployments.Status, "deployments/scale": deployments.Scale,
	}})
	if err != nil {
		return groups, err
	}
	stores := groups[1].stores
	stores["replicasets"], stores["replicasets/status"], stores["replicasets/scale"] = replicaSets.ReplicaSet, replicaSets.Status, replicaSets.Scale
	leases, leasesErr := leasestore.NewREST(options)
	budgets, budgetStatus, budgetsErr := budgetstore.NewREST(options)
	if err := errors.Join(leasesErr, budgetsErr); err != nil {
		return groups, err
	}
	groups = append(groups,
		group{coordinationV1, "/apis", map[string]rest.Storage{"leases": leases}},
		group{policyV1, "/apis", map[string]rest.Storage{"poddisruptionbudgets": budgets, "poddisruptionbudgets/status": budgetStatus}})
	roles, rolesErr := newRoleStores(options)
	policies, policiesErr := newPolicyStores(options)
	events, eventsErr := eventstore.NewREST(options, eventSeconds) // the same objects as the Events of the core group
	priorities, prioritiesErr := prioritystore.NewREST(options)
	return append(groups,
		group{rbacV1, "/apis", roles},
		group{admissionV1, "/apis", policies},
		group{eventsV1, "/apis", map[string]rest.Storage{"events": events}},
		group{schedulingV1, "/apis", map[string]rest.Storage{"priorityclasses": priorities}},
	), errors.Join(rolesErr, policiesErr, eventsErr, prioritiesErr)
}

// newPolicyStores creates the registries of admission policies and of their bindings.
func newPolicyStores(options *storageOptions) (map[string]rest.Storage, error) {
	resources, err := resolver.NewDiscoveryResourceResolver(options.api.Discovery())
	if err != nil {
		return nil, err
	}
	policies, status, err := policystore.NewREST(options, authorizer, resources)
	if err != nil {
		return nil, err
	}
	bindings, err := bindingstore.NewREST(options, authorizer, &bindingstore.DefaultPolicyGetter{Getter: policies}, resources)
	return map[string]rest.Storage{
		"validatingadmissionpolicies": policies, "validatingadmissionpolicies/status": status, "validatingadmissionpolicybindings": bindings,
	}, err
}

// newRoleStores creates the registries of RBAC. The API server stores RBAC objects, but permits each
// request.
func newRoleStores(options *storageOptions) (map[string]rest.Storage, error) {
	roles, rolesErr := rolestore.NewREST(options)
	bindings, bindingsErr := rolebindingstore.NewREST(options)
	clusterRoles, clusterRolesErr := clusterrolestore.NewREST(options)
	clusterBindings, clusterBindingsErr := clusterrolebindingstore.NewREST(options)
	return map[string]rest.Storage{
		"roles": roles, "rolebindings": bindings, "clusterroles": clusterRoles, "clusterrolebindings": clusterBindings,
	}, errors.Join(rolesErr, bindingsErr, clusterRolesErr, clusterBindingsErr)
}

// newCoreStores creates the registries of the core API group, such as those of pods and nodes.
func newCoreStores(options *storageOptions) (map[string]rest.Storage, error) {
	events, eventsErr := eventstore.NewREST(options, eventSeconds)
	namespaces, namespaceStatus, namespaceFinalize, namespacesErr := namespacestore.NewREST(options)
	endpoints, endpointsErr := endpointsstore.NewREST(options)
	nodes, nodesErr := nodestore.NewStorage(options, client.KubeletClientConfig{}, nil)
	controllers, controllersErr := rcstore.NewStorage(options)
	configMaps, configMapsErr := configmapstore.NewREST(options)
	secrets, secretsErr := secretstore.NewREST(options)
	quotas, quotaStatus, quotasErr := quotastore.NewREST(options)
	if err := errors.Join(quotasErr, eventsErr, namespacesErr, endpointsErr, nodesErr, controllersErr, configMapsErr, secretsErr); err != nil {
		return nil, err
	}
	pods, err := podstore.NewStorage(options, nodes.KubeletConnectionInfo, nil, options.api.PolicyV1(), authorizer)
	if err != nil {
		return nil, err
	}
	accounts, err := accountstore.NewREST(options, nil, nil, 0, nil, nil, nil, false, 0)
	if err != nil {
		return nil, err
	}
	services, serviceStatus, err := options.services.newStores(options, endpoints, pods.Pod)
	if err != nil {
		return nil, err
	}
	return map[string]rest.Storage{
		"pods": pods.Pod, "pods/status": pods.Status, "pods/binding": pods.Binding, "pods/eviction": pods.Eviction,
		"configmaps": configMaps, "secrets": secrets, "serviceaccounts": accounts,
		"replicationcontrollers": controllers.Controller, "replicationcontrollers/status": controllers.Status, "replicationcontrollers/scale": controllers.Scale,
		"services": services, "services/status": serviceStatus, "endpoints": endpoints, "events": events,
		"namespaces": namespaces, "namespaces/status": namespaceStatus, "namespaces/finalize": namespaceFinalize,
		"nodes": nodes.Node, "nodes/status": nodes.Status, "resourcequotas": quotas, "resourcequotas/status": quotaStatus,
	}, nil
}

// install adds the HTTP handlers of the group's resources to the container. The admission plugins
// check each write.
func (g group) install(container *restful.Container, plugins admission.Interface) error {
	served := map[string][]string{}
	for resource := range g.stores {
		served[resource] = []string{g.version.String()}
	}
	scheme := legacyscheme.Scheme
	version := &endpoints.APIGroupVersion{
		Storage: g.stores, Root: g.root, GroupVersion: g.version, AllServedVersionsByResource: served, OptionsExternalVersion: &coreV1,
		Serializer: codecs, ParameterCodec: legacyscheme.ParameterCodec, Typer: scheme, Creater: scheme, Defaulter: scheme,
		Convertor: scheme, ConvertabilityChecker: scheme, UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme),
		Namer: runtime.Namer(meta.NewAccessor()), EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(),
		Authorizer: authorizer, MinRequestTimeout: 30 * time.Minute, MaxRequestBodyBytes: 3 << 20,
		TypeConverter: noFields{}, Admit: plugins,
	}
	_, _, err := version.InstallREST(container)
	return err
}
