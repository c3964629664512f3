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

// source lists and watches the observed objects of one kind.
type source interface {
	list(ctx context.Context) (runtime.Object, error)
	watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newSource returns the source of a kind. Objects of client-go's kinds have Go types; other
// objects are unstructured.
func newSource(config *rest.Config, kind kube.Kind, namespace string) (source, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1 // no client-side limit: it would delay the records
	c.UserAgent = "gauntlet-observer"
	if kind.Builtin() {
		return newTypedSource(c, kind, namespace)
	}
	return newUnstructuredSource(c, kind, namespace)
}

// typedSource is the source of a kind of client-go.
type typedSource struct {
	client    rest.Interface
	plural    string
	namespace string // empty for cluster-scoped kinds
}

// newTypedSource returns a source that uses protobuf, to save CPU on the machine that also
// runs the control plane. It changes config.
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

// unstructuredSource is the source of a kind that client-go does not contain, such as a
// custom resource. It uses JSON.
type unstructuredSource struct {
	// The scope of the kind is unknown. The API server answers requests for a cluster-scoped
	// resource in a namespace with NotFound, as if the resource were not defined.
	inNamespace, inCluster dynamic.ResourceInterface
}

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

// inEitherScope calls request for the resource in the namespace. If this resource does not
// exist, it calls request for the resource of the cluster. The result may then contain
// objects of other namespaces, if the resource is defined between the calls.
func inEitherScope[T any](s *unstructuredSource, request func(dynamic.ResourceInterface) (T, error)) (T, error) {
	result, err := request(s.inNamespace)
	if apierrors.IsNotFound(err) {
		return request(s.inCluster)
	}
	return result, err
}
