package replicaset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// handle puts the controller's handlers on the informers.
func (c *Controller) handle(owners, pods cache.SharedIndexInformer) error {
	for _, on := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandlerFuncs
	}{
		{c.traits.Resource, owners, cache.ResourceEventHandlerFuncs{
			AddFunc:    c.ownerChanged,
			UpdateFunc: c.ownerUpdated,
			DeleteFunc: c.ownerDeleted,
		}},
		{podsResource, pods, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.podAdded(object.(*corev1.Pod)) },
			UpdateFunc: func(old, object any) { c.podUpdated(old.(*corev1.Pod), object.(*corev1.Pod)) },
			DeleteFunc: c.podDeleted,
		}},
	} {
		registration, err := on.informer.AddEventHandler(on.handler)
		if err != nil {
			return fmt.Errorf("handling events of %s: %w", on.what, err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return nil
}

func (c *Controller) ownerChanged(object any) {
	c.loop.Add(ownership.IDOf(object.(metav1.Object)).Key)
}

// ownerUpdated also notices an owner that was deleted and made anew while the
// watch was down, which the informer tells as one update.
func (c *Controller) ownerUpdated(old, object any) {
	before, after := ownership.IDOf(old.(metav1.Object)), ownership.IDOf(object.(metav1.Object))
	if before.UID != after.UID {
		c.forget(before)
	}
	c.loop.Add(after.Key)
}

func (c *Controller) ownerDeleted(object any) {
	owner, ok := lastKnown[metav1.Object](object)
	if !ok {
		c.logger.Error(nil, "A delete event carries no object", "type", fmt.Sprintf("%T", object))
		return
	}
	id := ownership.IDOf(owner)
	c.forget(id)
	c.loop.Add(id.Key)
}

func (c *Controller) forget(owner ownership.ID) {
	c.expectations.Forget(owner)
	c.writes.Forget(owner)
}

// podAdded also serves pods that are terminating when first seen, which have
// appeared all the same.
func (c *Controller) podAdded(pod *corev1.Pod) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		c.wakeMatching(pod)
		return
	}
	owner, ok := c.resolve(pod.Namespace, ref)
	if !ok {
		return
	}
	c.expectations.CreationObserved(owner, pod.UID)
	if pod.DeletionTimestamp != nil {
		c.expectations.DeletionObserved(owner, pod.UID)
	}
	c.loop.Add(owner.Key)
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if pod.ResourceVersion == old.ResourceVersion {
		return // a resync
	}
	if pod.UID != old.UID {
		// Deleted and made anew while the watch was down.
		c.podDeleted(old)
		c.podAdded(pod)
		return
	}
	oldRef, ref := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(pod)
	moved := !equality.Semantic.DeepEqual(oldRef, ref)
	if moved && oldRef != nil {
		if owner, ok := c.resolve(old.Namespace, oldRef); ok {
			if ref == nil || ref.UID != oldRef.UID {
				// Its end will not be told as the end of this owner's pod.
				c.expectations.DeletionObserved(owner, pod.UID)
			}
			c.loop.Add(owner.Key)
		}
	}
	if ref == nil {
		if moved || !equality.Semantic.DeepEqual(old.Labels, pod.Labels) {
			c.wakeMatching(pod)
		}
		return
	}
	if owner, ok := c.resolve(pod.Namespace, ref); ok {
		if pod.DeletionTimestamp != nil {
			// It is to be replaced now, not when its grace period is over.
			c.expectations.DeletionObserved(owner, pod.UID)
		}
		c.loop.Add(owner.Key)
	}
}

func (c *Controller) podDeleted(object any) {
	pod, ok := lastKnown[*corev1.Pod](object)
	if !ok {
		c.logger.Error(nil, "A delete event carries no pod", "type", fmt.Sprintf("%T", object))
		return
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return
	}
	if owner, ok := c.resolve(pod.Namespace, ref); ok {
		c.expectations.DeletionObserved(owner, pod.UID)
		c.loop.Add(owner.Key)
	}
}

// lastKnown unwraps what a delete handler gets: the object, or a tombstone when
// the deletion itself was missed.
func lastKnown[T any](object any) (T, bool) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	known, ok := object.(T)
	return known, ok
}

// resolve returns the cached owner that ref names: of this kind, and not a
// namesake of a later day.
func (c *Controller) resolve(namespace string, ref *metav1.OwnerReference) (ownership.ID, bool) {
	if ref.Kind != c.traits.GVK.Kind {
		return ownership.ID{}, false
	}
	object, exists, err := c.owners.GetByKey(cache.NewObjectName(namespace, ref.Name).String())
	if err != nil || !exists {
		return ownership.ID{}, false
	}
	id := ownership.IDOf(object.(metav1.Object))
	return id, id.UID == ref.UID
}

// wakeMatching wakes every owner that could adopt an orphan.
func (c *Controller) wakeMatching(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil || len(pod.Labels) == 0 {
		return
	}
	objects, err := c.owners.ByIndex(cache.NamespaceIndex, pod.Namespace)
	if err != nil {
		c.logger.Error(err, "Looking up owners by namespace", "resource", c.traits.Resource)
		return
	}
	for _, object := range objects {
		owner, err := c.kind.Owner(object)
		if err == nil && owner.Selector.Matches(labels.Set(pod.Labels)) {
			c.loop.Add(owner.ID().Key)
		}
	}
}
