package testenv

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient/k8s"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Object is an API object with metadata, such as *corev1.Pod.
type Object = k8s.Object

// rawEndpoints is the Go type of the deprecated v1 Endpoints API.
type rawEndpoints = corev1.Endpoints //nolint:staticcheck // the Endpoints API is deprecated, but it is what the specs test

// Ref identifies an object in the namespace of a Ginkgo spec by kind and name.
type Ref struct{ Kind, Name string }

func (r Ref) String() string { return r.Kind + "/" + r.Name }

// These are the kinds of objects that Ginkgo specs use.
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

// kind describes a kind of API object, such as ReplicaSet, and its resource.
type kind struct {
	name, resource string
	gvk            schema.GroupVersionKind
	// qualified is the resource with its API group, such as "replicasets.apps". Histories and
	// faults use this form.
	qualified string
	example   Object
}

// kinds lists the kinds whose objects testenv watches in each namespace.
var kinds = kindsOf(&corev1.Pod{}, &appsv1.ReplicaSet{}, &corev1.ReplicationController{}, &appsv1.Deployment{},
	&corev1.Service{}, &rawEndpoints{}, &corev1.Event{}, &corev1.ServiceAccount{}, &corev1.ResourceQuota{})

// kindsOf returns the kinds of the given objects. client-go's scheme has the kind of each Go
// type, and package kube has the resource of each kind.
func kindsOf(examples ...Object) []kind {
	var found []kind
	for _, example := range examples {
		registered, _, err := scheme.Scheme.ObjectKinds(example)
		if err != nil {
			panic(err) // the list kinds contains a type that is not an API object
		}
		k := kube.Generic(registered[0])
		found = append(found, kind{k.Name, k.GVR.Resource, registered[0], k.Resource(), example})
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

// ResourceOf returns the resource of a kind with its API group, such as "replicasets.apps".
// Faults and histories use this form.
func ResourceOf(kind string) string { return kindNamed(kind).qualified }

// kindNamed returns the kind with the given name, such as "Pod". It panics if kinds does not
// contain the name.
func kindNamed(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic(fmt.Sprintf("found kind %q; expected one of the kinds in suites/conformance/testenv/kinds.go", name)) // a mistake in the spec
}

// RefOf returns the kind and the name of an object. The object's Go type determines the kind.
func RefOf(o Object) Ref {
	for _, k := range kinds {
		if fmt.Sprintf("%T", k.example) == fmt.Sprintf("%T", o) {
			return Ref{k.name, o.GetName()}
		}
	}
	panic(fmt.Sprintf("found an object of type %T; expected one of the kinds in suites/conformance/testenv/kinds.go", o)) // a mistake in the spec
}
