package testenv

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AllPods asks for the Pods of the namespace.
func AllPods() Query {
	return Query{"the pods", func(v *View) any { return v.Pods() }}
}

// PodsOf asks for the Pods that an object controls and that count as replicas.
func PodsOf(ref Ref) Query {
	return Query{"the active pods of " + ref.String(), func(v *View) any { return v.Pods().Of(ref).Active() }}
}

// APod asks for the Pod of that name; the zero value if there is none.
func APod(name string) Query {
	return Query{"the pod " + name, func(v *View) any {
		return Pod{one[*corev1.Pod](v, PodKind, name)}
	}}
}

// ASet asks for the *Set.
func ASet(ref Ref) Query {
	return Query{ref.String(), func(v *View) any { return v.Set(ref) }}
}

// ASetWithPods asks for a WithPods[*Set], of the pods that it controls.
func ASetWithPods(ref Ref) Query {
	return Query{ref.String() + " and its pods", func(v *View) any {
		return WithPods[*Set]{v.Set(ref), v.Pods().Of(ref)}
	}}
}

// ADeploymentWithPods asks for a WithPods[*Deployment], of all pods of the namespace.
func ADeploymentWithPods(ref Ref) Query {
	return Query{ref.String() + " and the pods", func(v *View) any {
		return WithPods[*Deployment]{v.Deployment(ref.Name), v.Pods()}
	}}
}

// SetsOf asks for the Sets that a Deployment controls.
func SetsOf(ref Ref) Query {
	return Query{"the ReplicaSets of " + ref.String(), func(v *View) any { return v.ReplicaSets().Of(ref) }}
}

// ADeployment asks for the *Deployment.
func ADeployment(ref Ref) Query {
	return Query{ref.String(), func(v *View) any { return v.Deployment(ref.Name) }}
}

// TheEndpoints asks for the *Endpoints of that name.
func TheEndpoints(name string) Query {
	return Query{"the Endpoints " + name, func(v *View) any { return v.Endpoints(name) }}
}

// EventsAbout asks for the events about an object, as strings; see [View.EventsAbout].
func EventsAbout(ref Ref) Query {
	return Query{"the events about " + ref.String(), func(v *View) any { return v.EventsAbout(ref) }}
}

// AQuota asks for the *ResourceQuota of that name.
func AQuota(name string) Query {
	return Query{"the quota " + name, func(v *View) any { return v.Quota(name) }}
}

// UIDOf asks for the types.UID of an object; "" if there is none.
func UIDOf(ref Ref) Query {
	return Query{"the UID of " + ref.String(), func(v *View) any {
		if object := v.store.objects[ref]; object != nil {
			return object.GetUID()
		}
		return types.UID("")
	}}
}

// Exists asks whether there is an object.
func Exists(ref Ref) Query {
	return Query{"whether there is " + ref.String(), func(v *View) any { return v.Has(ref) }}
}

// Barrier makes an object for each of the subject's controllers, and returns when
// each has been seen to: whatever the subject was told before, it has begun to act
// on. It is how specs know that something has not happened.
func (n *Namespace) Barrier(ctx context.Context) {
	ginkgo.GinkgoHelper()
	n.BarrierOf(ctx, ReplicaSetKind, ReplicationControllerKind, DeploymentKind, EndpointsKind)
}

// BarrierOf is the Barrier of some controllers, by the kind that they see to. The
// pods of its Deployments and sets are none.
func (n *Namespace) BarrierOf(ctx context.Context, kinds ...string) {
	ginkgo.GinkgoHelper()
	n.barriers++
	name := fmt.Sprintf("barrier-%d", n.barriers)
	var made []Ref
	for _, kind := range kinds {
		made = append(made, n.Create(ctx, barriers[kind](name)))
	}
	n.Eventually(ctx, Query{"the subject to see to what is new", func(v *View) any {
		for _, ref := range made {
			if !v.seenTo(ref) {
				return false
			}
		}
		return true
	}}, Be(func(done bool) bool { return done }, "%v that were made now to be seen to", kinds))
	for _, ref := range made {
		n.Delete(ctx, ref, metav1.DeletePropagationBackground)
	}
}

// barriers make what a controller is to see to.
var barriers = map[string]func(name string) Object{
	ReplicaSetKind:            func(name string) Object { return SetSpec{Kind: ReplicaSetKind, Name: name}.Build() },
	ReplicationControllerKind: func(name string) Object { return SetSpec{Kind: ReplicationControllerKind, Name: name}.Build() },
	DeploymentKind:            func(name string) Object { return NewDeployment(name, 0) },
	EndpointsKind:             func(name string) Object { return NewService(name, map[string]string{"app": name}) },
}

// seenTo is whether a controller has acted on an object.
func (v *View) seenTo(ref Ref) bool {
	switch ref.Kind {
	case ServiceKind:
		return v.Endpoints(ref.Name) != nil
	case DeploymentKind:
		d := v.Deployment(ref.Name)
		return d != nil && d.Status.ObservedGeneration > 0
	default:
		s := v.Set(ref)
		return s != nil && s.Observed > 0
	}
}
