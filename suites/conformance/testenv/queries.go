package testenv

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetPods asks for the Pods of the namespace.
func GetPods() Query {
	return Query{"the pods", func(v *View) any { return v.Pods() }}
}

// GetActivePods asks for the Pods that an object controls and that count as replicas.
func GetActivePods(ref Ref) Query {
	return Query{"the active pods of " + ref.String(), func(v *View) any { return v.Pods().ControlledBy(ref).Active() }}
}

// GetPod asks for the Pod of that name; the zero value if there is none.
func GetPod(name string) Query {
	return Query{"the pod " + name, func(v *View) any {
		return Pod{objectNamed[*corev1.Pod](v, PodKind, name)}
	}}
}

// GetReplicaOwner asks for the *Set.
func GetReplicaOwner(ref Ref) Query {
	return Query{ref.String(), func(v *View) any { return v.ReplicaOwner(ref) }}
}

// GetReplicaOwnerWithPods asks for a WithPods[*Set], of the pods that it controls.
func GetReplicaOwnerWithPods(ref Ref) Query {
	return Query{ref.String() + " and its pods", func(v *View) any {
		return WithPods[*ReplicaOwner]{v.ReplicaOwner(ref), v.Pods().ControlledBy(ref)}
	}}
}

// GetDeploymentWithPods asks for a WithPods[*Deployment], of all pods of the namespace.
func GetDeploymentWithPods(ref Ref) Query {
	return Query{ref.String() + " and the pods", func(v *View) any {
		return WithPods[*Deployment]{v.Deployment(ref.Name), v.Pods()}
	}}
}

// GetReplicaSets asks for the Sets that a Deployment controls.
func GetReplicaSets(ref Ref) Query {
	return Query{"the ReplicaSets of " + ref.String(), func(v *View) any { return v.ReplicaSets().ControlledBy(ref) }}
}

// GetDeployment asks for the *Deployment.
func GetDeployment(ref Ref) Query {
	return Query{ref.String(), func(v *View) any { return v.Deployment(ref.Name) }}
}

// GetEndpoints asks for the *Endpoints of that name.
func GetEndpoints(name string) Query {
	return Query{"the Endpoints " + name, func(v *View) any { return v.Endpoints(name) }}
}

// GetEvents asks for the events about an object, as strings; see [View.EventsAbout].
func GetEvents(ref Ref) Query {
	return Query{"the events about " + ref.String(), func(v *View) any { return v.EventsAbout(ref) }}
}

// GetQuota asks for the *ResourceQuota of that name.
func GetQuota(name string) Query {
	return Query{"the quota " + name, func(v *View) any { return v.Quota(name) }}
}

// GetUID asks for the types.UID of an object; "" if there is none.
func GetUID(ref Ref) Query {
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
	n.barrierCount++
	name := fmt.Sprintf("barrier-%d", n.barrierCount)
	var made []Ref
	for _, kind := range kinds {
		made = append(made, n.Create(ctx, barrierObjects[kind](name)))
	}
	n.Eventually(ctx, Query{"the subject to see to what is new", func(v *View) any {
		for _, ref := range made {
			if !v.handled(ref) {
				return false
			}
		}
		return true
	}}, Satisfy(func(done bool) bool { return done }, "%v that were made now to be seen to", kinds))
	for _, ref := range made {
		n.Delete(ctx, ref, metav1.DeletePropagationBackground)
	}
}

// barrierObjects make what a controller is to see to.
var barrierObjects = map[string]func(name string) Object{
	ReplicaSetKind:            func(name string) Object { return ReplicaOwnerSpec{Kind: ReplicaSetKind, Name: name}.Build() },
	ReplicationControllerKind: func(name string) Object { return ReplicaOwnerSpec{Kind: ReplicationControllerKind, Name: name}.Build() },
	DeploymentKind:            func(name string) Object { return NewDeployment(name, 0) },
	EndpointsKind:             func(name string) Object { return NewService(name, map[string]string{"app": name}) },
}

// handled is whether a controller has acted on an object.
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
