package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// kind contains the API operations on objects of one kind.
type kind struct {
	resource string         // resource name in histories
	example  runtime.Object // object of the Go type of the kind
	create   func(context.Context, kubernetes.Interface, runtime.Object) (metav1.Object, error)
	patch    func(ctx context.Context, c kubernetes.Interface, namespace, name string, kind types.PatchType, patch []byte) (metav1.Object, error)
	delete   func(ctx context.Context, c kubernetes.Interface, namespace, name string, o metav1.DeleteOptions) error
	// watch returns a ListerWatcher for the object of that name.
	watch func(c kubernetes.Interface, namespace, name string) cache.ListerWatcher
}

// kinds contains an entry for each kind of object in scenarios.
var kinds = map[scenario.Kind]kind{
	scenario.ReplicaSet: kindOf("replicasets.apps", &appsv1.ReplicaSet{},
		func(c kubernetes.Interface, namespace string) client[*appsv1.ReplicaSet, *appsv1.ReplicaSetList] {
			return c.AppsV1().ReplicaSets(namespace)
		}),
	scenario.ReplicationController: kindOf("replicationcontrollers", &corev1.ReplicationController{},
		func(c kubernetes.Interface, namespace string) client[*corev1.ReplicationController, *corev1.ReplicationControllerList] {
			return c.CoreV1().ReplicationControllers(namespace)
		}),
	scenario.Deployment: kindOf("deployments.apps", &appsv1.Deployment{},
		func(c kubernetes.Interface, namespace string) client[*appsv1.Deployment, *appsv1.DeploymentList] {
			return c.AppsV1().Deployments(namespace)
		}),
	scenario.Service: kindOf("services", &corev1.Service{},
		func(c kubernetes.Interface, namespace string) client[*corev1.Service, *corev1.ServiceList] {
			return c.CoreV1().Services(namespace)
		}),
	scenario.Endpoints: kindOf("endpoints", &endpoints{},
		func(c kubernetes.Interface, namespace string) client[*endpoints, *endpointsList] {
			return c.CoreV1().Endpoints(namespace)
		}),
	scenario.Pod: kindOf("pods", &corev1.Pod{},
		func(c kubernetes.Interface, namespace string) client[*corev1.Pod, *corev1.PodList] {
			return c.CoreV1().Pods(namespace)
		}),
}

// object is a pointer to an API object.
type object interface {
	runtime.Object
	metav1.Object
}

// client is the common interface of the typed clients of all kinds.
type client[T object, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// kindOf returns the kind whose operations use a typed client.
func kindOf[T object, L runtime.Object](resource string, example T, in func(kubernetes.Interface, string) client[T, L]) kind {
	return kind{
		resource: resource,
		example:  example,
		create: func(ctx context.Context, c kubernetes.Interface, o runtime.Object) (metav1.Object, error) {
			typed, ok := o.(T)
			if !ok {
				return nil, fmt.Errorf("creating %s: expected %T, found %T", resource, example, o)
			}
			return in(c, typed.GetNamespace()).Create(ctx, typed, metav1.CreateOptions{})
		},
		patch: func(ctx context.Context, c kubernetes.Interface, namespace, name string, kind types.PatchType, patch []byte) (metav1.Object, error) {
			return in(c, namespace).Patch(ctx, name, kind, patch, metav1.PatchOptions{})
		},
		delete: func(ctx context.Context, c kubernetes.Interface, namespace, name string, o metav1.DeleteOptions) error {
			return in(c, namespace).Delete(ctx, name, o)
		},
		watch: func(c kubernetes.Interface, namespace, name string) cache.ListerWatcher {
			byName := func(o metav1.ListOptions) metav1.ListOptions {
				o.FieldSelector = "metadata.name=" + name
				return o
			}
			return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return in(c, namespace).List(ctx, byName(o))
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					return in(c, namespace).Watch(ctx, byName(o))
				},
			}, c)
		},
	}
}
