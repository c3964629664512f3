package replicaset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/tombstone"
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
	owner, ok := tombstone.LastKnown[metav1.Object](object)
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
	owner, ok := c.lookup.Named(pod.Namespace, ref)
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
		if owner, ok := c.lookup.Named(old.Namespace, oldRef); ok {
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
	if owner, ok := c.lookup.Named(pod.Namespace, ref); ok {
		if pod.DeletionTimestamp != nil {
			// It is to be replaced now, not when its grace period is over.
			c.expectations.DeletionObserved(owner, pod.UID)
		}
		c.loop.Add(owner.Key)
	}
}

func (c *Controller) podDeleted(object any) {
	pod, ok := tombstone.LastKnown[*corev1.Pod](object)
	if !ok {
		c.logger.Error(nil, "A delete event carries no pod", "type", fmt.Sprintf("%T", object))
		return
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return
	}
	if owner, ok := c.lookup.Named(pod.Namespace, ref); ok {
		c.expectations.DeletionObserved(owner, pod.UID)
		c.loop.Add(owner.Key)
	}
}

// wakeMatching wakes every owner that could adopt an orphan.
func (c *Controller) wakeMatching(pod *corev1.Pod) {
	owners, err := c.lookup.Matching(pod)
	if err != nil {
		c.logger.Error(err, "Orphan is not offered", "pod", klog.KObj(pod))
	}
	for _, owner := range owners {
		c.loop.Add(owner.Key)
	}
}
