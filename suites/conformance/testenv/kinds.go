package testenv

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Object is an API object.
type Object interface {
	metav1.Object
	runtime.Object
}

type rawEndpoints = corev1.Endpoints //nolint:staticcheck // the deprecated API is the subject

// Ref identifies an object in the namespace of a spec.
type Ref struct{ Kind, Name string }

func (r Ref) String() string { return r.Kind + "/" + r.Name }

// The kinds that specs use.
const (
	PodKind                   = kube.Pod
	ReplicaSetKind            = kube.ReplicaSet
	ReplicationControllerKind = kube.ReplicationController
	DeploymentKind            = kube.Deployment
	ServiceKind               = kube.Service
	EndpointsKind             = kube.Endpoints
	eventKind                 = "Event"
	serviceAccountKind        = "ServiceAccount"
	resourceQuotaKind         = "ResourceQuota"
)

// kind describes the API resource of one kind of object, as the registry of kinds does.
type kind struct {
	name, resource string
	// qualified is the resource with its API group, as in histories: "replicasets.apps".
	qualified string
	example   Object
}

// kinds are the kinds that the store of a namespace watches.
var kinds = kindsOf(&corev1.Pod{}, &appsv1.ReplicaSet{}, &corev1.ReplicationController{}, &appsv1.Deployment{},
	&corev1.Service{}, &rawEndpoints{}, &corev1.Event{}, &corev1.ServiceAccount{}, &corev1.ResourceQuota{})

// kindsOf returns the kinds of the example objects. It takes the names of the kinds from
// the scheme of client-go, and their resources from the registry of kinds.
func kindsOf(examples ...Object) []kind {
	var found []kind
	for _, example := range examples {
		registered, _, err := scheme.Scheme.ObjectKinds(example)
		if err != nil {
			panic(err) // kinds has a type that is not an API object
		}
		k := kube.Generic(registered[0])
		found = append(found, kind{k.Name, k.GVR.Resource, k.Resource(), example})
	}
	return found
}

// client returns the REST client for the API group of the kind.
func (k kind) client(c kubernetes.Interface) rest.Interface {
	if k.resource == k.qualified {
		return c.CoreV1().RESTClient()
	}
	return c.AppsV1().RESTClient()
}

// ResourceOf returns the name that faults and histories use for the resource of a kind.
func ResourceOf(kind string) string { return kindNamed(kind).qualified }

func kindNamed(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic(fmt.Sprintf("kind %q is not in the table of kinds", name)) // a mistake in a spec
}

// RefOf returns the Ref of an object, with the kind of its Go type.
func RefOf(o Object) Ref {
	for _, k := range kinds {
		if fmt.Sprintf("%T", k.example) == fmt.Sprintf("%T", o) {
			return Ref{k.name, o.GetName()}
		}
	}
	panic(fmt.Sprintf("type %T is not in the table of kinds", o)) // a mistake in a spec
}
