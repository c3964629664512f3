package testenv

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Object is an object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

type rawEndpoints = corev1.Endpoints //nolint:staticcheck // the deprecated API is the subject

// Ref names an object of a spec's namespace.
type Ref struct{ Kind, Name string }

func (r Ref) String() string { return r.Kind + "/" + r.Name }

// The kinds that specs have to do with.
const (
	PodKind                   = "Pod"
	ReplicaSetKind            = "ReplicaSet"
	ReplicationControllerKind = "ReplicationController"
	DeploymentKind            = "Deployment"
	ServiceKind               = "Service"
	EndpointsKind             = "Endpoints"
	eventKind                 = "Event"
	serviceAccountKind        = "ServiceAccount"
	resourceQuotaKind         = "ResourceQuota"
)

// kind is how a kind of objects is reached.
type kind struct {
	name, resource string
	// recorded is what histories call the resource.
	recorded string
	example  Object
	client   func(kubernetes.Interface) rest.Interface
}

func core(client kubernetes.Interface) rest.Interface { return client.CoreV1().RESTClient() }
func apps(client kubernetes.Interface) rest.Interface { return client.AppsV1().RESTClient() }

// kinds is the table of all: what a namespace's store watches.
var kinds = []kind{
	{PodKind, "pods", "pods", &corev1.Pod{}, core},
	{ReplicaSetKind, "replicasets", "replicasets.apps", &appsv1.ReplicaSet{}, apps},
	{ReplicationControllerKind, "replicationcontrollers", "replicationcontrollers", &corev1.ReplicationController{}, core},
	{DeploymentKind, "deployments", "deployments.apps", &appsv1.Deployment{}, apps},
	{ServiceKind, "services", "services", &corev1.Service{}, core},
	{EndpointsKind, "endpoints", "endpoints", &rawEndpoints{}, core},
	{eventKind, "events", "events", &corev1.Event{}, core},
	{serviceAccountKind, "serviceaccounts", "serviceaccounts", &corev1.ServiceAccount{}, core},
	{resourceQuotaKind, "resourcequotas", "resourcequotas", &corev1.ResourceQuota{}, core},
}

// ResourceOf is what faults and histories call the resource of a kind.
func ResourceOf(kind string) string { return kindNamed(kind).recorded }

func kindNamed(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic(fmt.Sprintf("no kind %q in the table of kinds", name)) // a spec's mistake
}

// RefOf names an object by its Go type.
func RefOf(o Object) Ref {
	for _, k := range kinds {
		if fmt.Sprintf("%T", k.example) == fmt.Sprintf("%T", o) {
			return Ref{k.name, o.GetName()}
		}
	}
	panic(fmt.Sprintf("no kind of %T in the table of kinds", o)) // a spec's mistake
}
