package testenv

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetPods returns a query for all [Pods] in the namespace.
func GetPods() Query {
	return Query{"the pods", func(v *View) any { return v.Pods() }}
}

// GetActivePods returns a query for the active [Pods] that an object controls.
func GetActivePods(ref Ref) Query {
	return Query{"the active pods of " + ref.String(), func(v *View) any { return v.Pods().ControlledBy(ref).Active() }}
}

// GetPod returns a query for a [Pod]. The value is the zero Pod if the pod does not exist.
func GetPod(name string) Query {
	return Query{"the pod " + name, func(v *View) any {
		return Pod{objectNamed[*corev1.Pod](v, PodKind, name)}
	}}
}

// GetReplicaOwner returns a query for a *[ReplicaOwner]. The value is nil if the object does not
// exist.
func GetReplicaOwner(ref Ref) Query {
	return Query{ref.String(), func(v *View) any { return v.ReplicaOwner(ref) }}
}

// GetReplicaOwnerWithPods returns a query for a [WithPods]. It contains a *[ReplicaOwner] and
// the pods that this object controls.
func GetReplicaOwnerWithPods(ref Ref) Query {
	return Query{ref.String() + " and its pods", func(v *View) any {
		return WithPods[*ReplicaOwner]{v.ReplicaOwner(ref), v.Pods().ControlledBy(ref)}
	}}
}

// GetDeploymentWithPods returns a query for a [WithPods]. It contains a *[Deployment] and all pods
// in the namespace, because a Deployment does not control its pods directly.
func GetDeploymentWithPods(ref Ref) Query {
	return Query{ref.String() + " and the pods", func(v *View) any {
		return WithPods[*Deployment]{v.Deployment(ref.Name), v.Pods()}
	}}
}

// GetReplicaSets returns a query for the [ReplicaSets] that a Deployment controls.
func GetReplicaSets(ref Ref) Query {
	return Query{"the ReplicaSets of " + ref.String(), func(v *View) any { return v.ReplicaSets().ControlledBy(ref) }}
}

// GetDeployment returns a query for a *[Deployment]. The value is nil if the Deployment does not
// exist.
func GetDeployment(ref Ref) Query {
	return Query{ref.String(), func(v *View) any { return v.Deployment(ref.Name) }}
}

// GetEndpoints returns a query for a *[Endpoints]. The value is nil if the Endpoints do not
// exist.
func GetEndpoints(name string) Query {
	return Query{"the Endpoints " + name, func(v *View) any { return v.Endpoints(name) }}
}

// GetEvents returns a query for a []string: the Event objects about an object, as text. See
// [View.EventsAbout].
func GetEvents(ref Ref) Query {
	return Query{"the events about " + ref.String(), func(v *View) any { return v.EventsAbout(ref) }}
}

// GetQuota returns a query for a *ResourceQuota. The value is nil if the quota does not exist.
func GetQuota(name string) Query {
	return Query{"the quota " + name, func(v *View) any { return v.Quota(name) }}
}

// GetUID returns a query for the types.UID of an object. The value is "" if the object does not
// exist.
func GetUID(ref Ref) Query {
	return Query{"the UID of " + ref.String(), func(v *View) any {
		if object := v.store.objects[ref]; object != nil {
			return object.GetUID()
		}
		return types.UID("")
	}}
}

// Exists returns a query for a bool: whether an object exists.
func Exists(ref Ref) Query {
	return Query{"whether " + ref.String() + " exists", func(v *View) any { return v.Has(ref) }}
}

// Barrier waits until the program under test has begun to process every event that it received
// before the call. Call Barrier before you check that a controller did not act.
//
// Barrier creates one object for each controller, and waits until the program has processed these
// objects.
func (n *Namespace) Barrier(ctx context.Context) {
	ginkgo.GinkgoHelper()
	n.BarrierOf(ctx, ReplicaSetKind, ReplicationControllerKind, DeploymentKind, EndpointsKind)
}

// BarrierOf does the same as Barrier, but only for the controllers of the given kinds, such as
// "Deployment". The objects that it creates lead to no pods.
func (n *Namespace) BarrierOf(ctx context.Context, kinds ...string) {
	ginkgo.GinkgoHelper()
	n.barrierCount++
	name := fmt.Sprintf("barrier-%d", n.barrierCount)
	var created []Ref
	for _, kind := range kinds {
		created = append(created, n.Create(ctx, barrierObjects[kind](name)))
	}
	n.Eventually(ctx, Query{"the subject to handle new objects", func(v *View) any {
		for _, ref := range created {
			if !v.handled(ref) {
				return false
			}
		}
		return true
	}}, Satisfy(func(done bool) bool { return done }, "the subject to have handled new objects of %v", kinds))
	for _, ref := range created {
		n.Delete(ctx, ref, metav1.DeletePropagationBackground)
	}
}

// barrierObjects maps a kind to a function that returns a new object for [Namespace.Barrier]. The
// controller of the kind must react to this object. Its reaction shows that it has begun to process
// all earlier events.
var barrierObjects = map[string]func(name string) Object{
	ReplicaSetKind:            func(name string) Object { return ReplicaOwnerSpec{Kind: ReplicaSetKind, Name: name}.Build() },
	ReplicationControllerKind: func(name string) Object { return ReplicaOwnerSpec{Kind: ReplicationControllerKind, Name: name}.Build() },
	DeploymentKind:            func(name string) Object { return NewDeployment(name, 0) },
	EndpointsKind:             func(name string) Object { return NewService(name, map[string]string{"app": name}) },
}

// handled reports whether a controller has processed a new object of [Namespace.Barrier]. For a
// Service, the controller has then created the Endpoints. For any other object, it has set
// status.observedGeneration.
func (v *View) handled(ref Ref) bool {
	switch ref.Kind {
	case ServiceKind:
		return v.Endpoints(ref.Name) != nil
	case DeploymentKind:
		d := v.Deployment(ref.Name)
		return d != nil && d.Status.ObservedGeneration > 0
	default:
		s := v.ReplicaOwner(ref)
		return s != nil && s.ObservedGeneration > 0
	}
}
