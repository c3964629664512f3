package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// kind sends API requests for objects of one kind. Namespaced objects are in the namespace of the
// run.
type kind struct {
	kube.Kind
	namespace string         // namespace of the objects; "" for a cluster-scoped kind
	example   runtime.Object // an empty object of the Go type that requests for the kind return
	create    func(context.Context, runtime.Object) (metav1.Object, error)
	patch     func(ctx context.Context, name string, of types.PatchType, patch []byte, subresources ...string) (metav1.Object, error)
	delete    func(ctx context.Context, name string, o metav1.DeleteOptions) error
	// watch returns a ListerWatcher that delivers only the object with the given name.
	watch func(name string) cache.ListerWatcher
}

// describe returns the object with the given name as text for error messages, such as "Pod
// default/web".
func (k kind) describe(name string) string {
	return k.Name + " " + cache.NewObjectName(k.namespace, name).String()
}

// kind returns the functions that send API requests for objects of the kind with the given name.
// For a generic kind, which scenarios create from manifests, the functions use the dynamic client.
// For all other kinds, they use typed clients.
func (u *user) kind(name scenario.Kind) (kind, error) {
	k, err := u.describe(name)
	if err != nil {
		return kind{}, err
	}
	c, in := u.Client, u.Namespace
	switch name {
	case scenario.ReplicaSet:
		return newKind(k, in, &appsv1.ReplicaSet{}, c.AppsV1().ReplicaSets(in), c), nil
	case scenario.ReplicationController:
		return newKind(k, in, &corev1.ReplicationController{}, c.CoreV1().ReplicationControllers(in), c), nil
	case scenario.Deployment:
		return newKind(k, in, &appsv1.Deployment{}, c.AppsV1().Deployments(in), c), nil
	case scenario.Service:
		return newKind(k, in, &corev1.Service{}, c.CoreV1().Services(in), c), nil
	case scenario.Endpoints:
		return newKind(k, in, &endpoints{}, c.CoreV1().Endpoints(in), c), nil
	case scenario.Pod:
		return newKind(k, in, &corev1.Pod{}, c.CoreV1().Pods(in), c), nil
	}
	if u.Dynamic == nil {
		return kind{}, fmt.Errorf("kind %s needs a dynamic client, but workload.Env.Dynamic is nil; set workload.Env.Dynamic", name)
	}
	if k.ClusterScoped {
		in = ""
	}
	objects := dynamicClient{u.Dynamic.Resource(k.GVR).Namespace(in)}
	return newKind(k, in, &unstructured.Unstructured{}, objects, u.Dynamic), nil
}

// describe returns the API group, version and resource of a kind. For a generic kind (one that
// scenarios create from manifests), it looks first in Env.Kinds. It then looks in the create
// steps with an apiVersion, and then in [kube.Kinds].
func (u *user) describe(name scenario.Kind) (kube.Kind, error) {
	if described, ok := u.described[name]; ok && name.IsGeneric() {
		return described, nil
	}
	if row, ok := kube.Named(string(name)); ok {
		return row, nil
	}
	return kube.Kind{}, fmt.Errorf("found unknown kind %s; add the kind to workload.Env.Kinds, or the field apiVersion to a create step of the kind", name)
}

// describedKinds returns the generic kinds (those that scenarios create from manifests) in
// Env.Kinds and in create steps with an apiVersion. The key is the name of the kind. If both have
// the kind, the result has the description in Env.Kinds.
func describedKinds(env Env, steps []scenario.Step) map[scenario.Kind]kube.Kind {
	described := map[scenario.Kind]kube.Kind{}
	for _, step := range steps {
		if create, ok := step.Operation.(*scenario.Create); ok && create.APIVersion != "" {
			described[create.Kind] = kube.Generic(kube.SplitGVK(create.APIVersion, string(create.Kind)))
		}
	}
	for _, k := range env.Kinds {
		described[scenario.Kind(k.Name)] = k
	}
	return described
}

// object is a pointer to an API object, such as *appsv1.Deployment. It is the type constraint of
// [newKind].
type object interface {
	runtime.Object
	metav1.Object
}

// client has the methods that the typed clients of all kinds have in common. Therefore [newKind]
// accepts each of these clients. A dynamicClient also has these methods.
type client[T object, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// dynamicClient gives a dynamic client the method signatures of a typed client. It wraps the
// methods Create and Delete, which also accept subresources.
type dynamicClient struct{ dynamic.ResourceInterface }

func (c dynamicClient) Create(ctx context.Context, o *unstructured.Unstructured, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Create(ctx, o, options)
}

func (c dynamicClient) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.ResourceInterface.Delete(ctx, name, options)
}

// newKind returns a kind whose functions send API requests with the argument objects, a client for
// this kind.
//
// The argument all is the clientset or dynamic client from which that client comes. client-go asks
// it whether watch-list requests are supported.
func newKind[T object, L runtime.Object](of kube.Kind, namespace string, example T, objects client[T, L], all any) kind {
	return kind{
		Kind:      of,
		namespace: namespace,
		example:   example,
		create: func(ctx context.Context, o runtime.Object) (metav1.Object, error) {
			typed, ok := o.(T)
			if !ok {
				return nil, fmt.Errorf("creating %s: found Go type %T; expected %T", of.Resource(), o, example)
			}
			return objects.Create(ctx, typed, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		},
		patch: func(ctx context.Context, name string, kind types.PatchType, patch []byte, subresources ...string) (metav1.Object, error) {
			return objects.Patch(ctx, name, kind, patch, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, subresources...)
		},
		delete: objects.Delete,
		watch: func(name string) cache.ListerWatcher {
			byName := func(o metav1.ListOptions) metav1.ListOptions {
				o.FieldSelector = "metadata.name=" + name
				return o
			}
			return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return objects.List(ctx, byName(o))
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					return objects.Watch(ctx, byName(o))
				},
			}, all)
		},
	}
}
