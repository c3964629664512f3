package observe

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// source lists and watches the objects of one API kind, in one namespace or in the whole
// cluster.
type source interface {
	list(ctx context.Context) (runtime.Object, error)
	watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newSource returns a source for the given API kind. If client-go contains the kind's Go type,
// the source returns objects of this type. Otherwise it returns unstructured objects.
func newSource(config *rest.Config, kind kube.Kind, namespace string) (source, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1 // a client-side rate limit would delay the records
	c.UserAgent = "gauntlet-observer"
	if kind.Builtin() {
		return newTypedSource(c, kind, namespace)
	}
	return newUnstructuredSource(c, kind, namespace)
}

// typedSource is a source for an API kind whose Go type client-go contains.
type typedSource struct {
	client    rest.Interface
	plural    string
	namespace string // namespace of the objects; empty for cluster-scoped kinds
}

// newTypedSource returns a source that uses protobuf. It changes the given config.
//
// Protobuf needs less CPU time than JSON. CPU time matters because the control plane may run on
// the same machine.
func newTypedSource(config *rest.Config, kind kube.Kind, namespace string) (source, error) {
	version := kind.GVR.GroupVersion()
	config.GroupVersion = &version
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	if kind.ClusterScoped {
		namespace = ""
	}
	return &typedSource{client: client, plural: kind.GVR.Resource, namespace: namespace}, nil
}

func (s *typedSource) request() *rest.Request {
	return s.client.Get().NamespaceIfScoped(s.namespace, s.namespace != "").Resource(s.plural)
}

func (s *typedSource) list(ctx context.Context) (runtime.Object, error) {
	return s.request().Do(ctx).Get()
}

func (s *typedSource) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return s.request().VersionedParams(&options, scheme.ParameterCodec).Watch(ctx)
}

// unstructuredSource is a source for an API kind that client-go does not contain, such as a
// custom resource. It uses JSON.
type unstructuredSource struct {
	// The source does not know the kind's scope, so it needs one client for the namespace and
	// one for the cluster. If the resource is cluster-scoped, the API server answers a request
	// in a namespace with 404. An undefined resource causes the same answer.
	inNamespace, inCluster dynamic.ResourceInterface
}

// newUnstructuredSource returns a source that uses client-go's dynamic client.
func newUnstructuredSource(config *rest.Config, kind kube.Kind, namespace string) (source, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects := client.Resource(kind.GVR)
	return &unstructuredSource{inNamespace: objects.Namespace(namespace), inCluster: objects}, nil
}

func (s *unstructuredSource) list(ctx context.Context) (runtime.Object, error) {
	return inEitherScope(s, func(objects dynamic.ResourceInterface) (runtime.Object, error) {
		return objects.List(ctx, metav1.ListOptions{})
	})
}

func (s *unstructuredSource) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return inEitherScope(s, func(objects dynamic.ResourceInterface) (watch.Interface, error) {
		return objects.Watch(ctx, options)
	})
}

// inEitherScope lists or watches a resource without knowing whether the resource is namespaced. The
// argument request is a function that sends the list or watch request. inEitherScope first calls it
// for the namespace of the source. If the API server returns 404, inEitherScope calls it for the
// whole cluster.
//
// Another client may define a namespaced resource between the two requests. The result then
// contains objects of all namespaces.
func inEitherScope[T any](s *unstructuredSource, request func(dynamic.ResourceInterface) (T, error)) (T, error) {
	result, err := request(s.inNamespace)
	if apierrors.IsNotFound(err) {
		return request(s.inCluster)
	}
	return result, err
}
