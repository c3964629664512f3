package replicaset

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/tombstone"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// eventHandlers returns the event handlers for owners and pods. The handlers add the keys of
// owners to the work queue. An owner is a ReplicaSet or a ReplicationController.
func (c *Controller) eventHandlers(owners, pods cache.SharedIndexInformer) []workloop.EventHandler {
	return []workloop.EventHandler{
		{Resource: c.traits.Resource, Informer: owners, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    c.ownerChanged,
			UpdateFunc: c.ownerUpdated,
			DeleteFunc: c.ownerDeleted,
		}},
		{Resource: podsResource, Informer: pods, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.podAdded(object.(*corev1.Pod)) },
			UpdateFunc: func(old, object any) { c.podUpdated(old.(*corev1.Pod), object.(*corev1.Pod)) },
			DeleteFunc: c.podDeleted,
		}},
	}
}

// ownerChanged enqueues the key of an added owner, a ReplicaSet or ReplicationController.
func (c *Controller) ownerChanged(object any) {
	c.loop.Add(ownership.IDOf(object.(metav1.Object)).Key)
}

// ownerUpdated enqueues the key of an updated owner, a ReplicaSet or ReplicationController.
//
// If an owner was deleted and recreated while the watch was interrupted, the informer reports one
// update with different UIDs. ownerUpdated then drops the tracked state of the deleted owner; see
// forget.
func (c *Controller) ownerUpdated(old, object any) {
	before, after := ownership.IDOf(old.(metav1.Object)), ownership.IDOf(object.(metav1.Object))
	if before.UID != after.UID {
		c.forget(before)
	}
	c.loop.Add(after.Key)
}

// ownerDeleted enqueues the key of a deleted owner, a ReplicaSet or ReplicationController. It also
// drops the tracked state of this owner; see forget.
//
// A sync of the owner may still be running, and may record new expectations or writes. The sync of
// the enqueued key finds no owner, and drops these expectations and writes.
func (c *Controller) ownerDeleted(object any) {
	owner, ok := tombstone.LastKnown[metav1.Object](c.logger, object)
	if !ok {
		return
	}
	id := ownership.IDOf(owner)
	c.forget(id)
	c.loop.Add(id.Key)
}

// forget drops the tracked state of a deleted owner. This state contains the owner's expectations,
// and the record of the controller's own writes for the owner.
func (c *Controller) forget(owner ownership.ID) {
	c.expectations.Forget(owner)
	c.writes.Forget(owner)
}

// podAdded records in the expectations that a pod was created, and enqueues the pod's owner. For an
// orphan, it enqueues the owners that could adopt the orphan.
//
// The pod may already be terminating in its first event. podAdded then also records that the pod
// was deleted.
func (c *Controller) podAdded(pod *corev1.Pod) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		c.ownerLookup.EnqueueMatching(c.logger, pod, c.loop.Add)
		return
	}
	owner, ok := c.ownerLookup.ResolveControllerRef(pod.Namespace, ref)
	if !ok {
		return
	}
	c.expectations.CreationObserved(owner, pod.UID)
	if pod.DeletionTimestamp != nil {
		c.expectations.DeletionObserved(owner, pod.UID)
	}
	c.loop.Add(owner.Key)
}

// podUpdated enqueues the owner of an updated pod. If the pod is terminating or was released by its
// owner, podUpdated records its deletion in the expectations.
//
// If the controllerRef has changed, podUpdated also enqueues the former owner. For an orphan
// whose controllerRef or labels have changed, it enqueues the owners that could adopt the
// orphan.
func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if pod.ResourceVersion == old.ResourceVersion {
		return // a periodic resync, not a change
	}
	if pod.UID != old.UID {
		// The pod was deleted and recreated while the watch was interrupted.
		c.podDeleted(old)
		c.podAdded(pod)
		return
	}
	oldRef, ref := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(pod)
	controllerRefChanged := !equality.Semantic.DeepEqual(oldRef, ref)
	if controllerRefChanged && oldRef != nil {
		if owner, ok := c.ownerLookup.ResolveControllerRef(old.Namespace, oldRef); ok {
			if ref == nil || ref.UID != oldRef.UID {
				// Later events of the pod do not name this owner any more. No later event will
				// satisfy the owner's expectation of a deletion.
				c.expectations.DeletionObserved(owner, pod.UID)
			}
			c.loop.Add(owner.Key)
		}
	}
	if ref == nil {
		if controllerRefChanged || !equality.Semantic.DeepEqual(old.Labels, pod.Labels) {
			c.ownerLookup.EnqueueMatching(c.logger, pod, c.loop.Add)
		}
		return
	}
	if !controllerRefChanged && !affectsOwner(old, pod) {
		return
	}
	if owner, ok := c.ownerLookup.ResolveControllerRef(pod.Namespace, ref); ok {
		if pod.DeletionTimestamp != nil {
			// The controller must replace a terminating pod now, before the pod is gone.
			c.expectations.DeletionObserved(owner, pod.UID)
		}
		c.loop.Add(owner.Key)
	}
}

// affectsOwner reports whether a change of a pod can change what a sync of its owner does. For
// example, it returns false for the assignment of a pod to a node. Such a change then causes no
// sync, which would read all pods of the owner.
func affectsOwner(old, pod *corev1.Pod) bool {
	if (old.DeletionTimestamp != nil) != (pod.DeletionTimestamp != nil) || old.Status.Phase != pod.Status.Phase {
		return true
	}
	since, ready := podutil.Ready(old)
	sinceNow, readyNow := podutil.Ready(pod)
	return ready != readyNow || !since.Equal(sinceNow) || !maps.Equal(old.Labels, pod.Labels)
}

// podDeleted records in the expectations that a pod was deleted, and enqueues the pod's owner.
func (c *Controller) podDeleted(object any) {
	pod, ok := tombstone.LastKnown[*corev1.Pod](c.logger, object)
	if !ok {
		return
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return
	}
	if owner, ok := c.ownerLookup.ResolveControllerRef(pod.Namespace, ref); ok {
		c.expectations.DeletionObserved(owner, pod.UID)
		c.loop.Add(owner.Key)
	}
}
