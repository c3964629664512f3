package deployment

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podfacts"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/tombstone"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// sources is what wakes Deployments: their own events, those of ReplicaSets,
// and the end of pods.
func (c *Controller) sources(config Config) []workloop.Source {
	return []workloop.Source{
		{Resource: deploymentsResource, Informer: config.Deployments, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.changed(object.(*appsv1.Deployment)) },
			UpdateFunc: func(old, object any) { c.updated(old.(*appsv1.Deployment), object.(*appsv1.Deployment)) },
			DeleteFunc: c.deleted,
		}},
		{Resource: replicaSetsResource, Informer: config.ReplicaSets, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.setAdded(object.(*appsv1.ReplicaSet)) },
			UpdateFunc: func(old, object any) { c.setUpdated(old.(*appsv1.ReplicaSet), object.(*appsv1.ReplicaSet)) },
			DeleteFunc: c.setDeleted,
		}},
		{Resource: "pods", Informer: config.Pods, Handler: cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(old, object any) { c.podUpdated(old.(*corev1.Pod), object.(*corev1.Pod)) },
			DeleteFunc: c.podDeleted,
		}},
	}
}

func (c *Controller) changed(d *appsv1.Deployment) { c.loop.Add(ownership.IDOf(d).Key) }

// updated also notices a Deployment that was deleted and made anew while the
// watch was down, which the informer tells as one update.
func (c *Controller) updated(old, d *appsv1.Deployment) {
	if old.UID != d.UID {
		c.forget(ownership.IDOf(old))
	}
	c.changed(d)
}

// deleted has the key synced as well: a sync that is under way may yet note a
// write, and only a later one can drop that.
func (c *Controller) deleted(object any) {
	if d, ok := tombstone.LastKnown[*appsv1.Deployment](c.logger, object); ok {
		c.forget(ownership.IDOf(d))
		c.changed(d)
	}
}

func (c *Controller) forget(owner ownership.ID) {
	c.setWrites.Forget(owner)
	c.ownWrites.Forget(owner)
}

func (c *Controller) setAdded(set *appsv1.ReplicaSet) {
	if ref := metav1.GetControllerOfNoCopy(set); ref != nil {
		c.wake(set.Namespace, ref)
	} else {
		c.owners.Offer(c.logger, set, c.loop.Add)
	}
}

func (c *Controller) setUpdated(old, set *appsv1.ReplicaSet) {
	if set.ResourceVersion == old.ResourceVersion {
		return // a resync
	}
	oldRef, ref := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(set)
	moved := !equality.Semantic.DeepEqual(oldRef, ref)
	if moved {
		c.wake(old.Namespace, oldRef)
	}
	switch {
	case ref != nil:
		c.wake(set.Namespace, ref)
	case moved || set.UID != old.UID || !maps.Equal(old.Labels, set.Labels):
		c.owners.Offer(c.logger, set, c.loop.Add)
	}
}

func (c *Controller) setDeleted(object any) {
	if set, ok := tombstone.LastKnown[*appsv1.ReplicaSet](c.logger, object); ok {
		c.wake(set.Namespace, metav1.GetControllerOfNoCopy(set))
	}
}

// wake has the Deployment that ref names synced, if it is one.
func (c *Controller) wake(namespace string, ref *metav1.OwnerReference) {
	if owner, ok := c.owners.Named(namespace, ref); ok {
		c.loop.Add(owner.Key)
	}
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if old.UID != pod.UID || podfacts.Terminal(pod) && !podfacts.Terminal(old) {
		c.podEnded(old)
	}
}

func (c *Controller) podDeleted(object any) {
	if pod, ok := tombstone.LastKnown[*corev1.Pod](c.logger, object); ok {
		c.podEnded(pod)
	}
}

// podEnded wakes a Recreate Deployment when one of its ReplicaSets has no pod
// left that runs: it may wait for that. Pods that have come to their end, but
// are not deleted, must not keep it waiting. As long as the ReplicaSet asks for
// pods, or counts some, nobody waits for their end yet, and the change of that
// wakes the Deployment anyway: pods are not looked through for each that ends.
func (c *Controller) podEnded(pod *corev1.Pod) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "ReplicaSet" {
		return
	}
	object, exists, err := c.replicaSets.GetByKey(cache.NewObjectName(pod.Namespace, ref.Name).String())
	if err != nil || !exists {
		return
	}
	set := object.(*appsv1.ReplicaSet)
	if ptr.Deref(set.Spec.Replicas, 1) > 0 || set.Status.Replicas > 0 {
		return
	}
	owner, ok := c.owners.Named(set.Namespace, metav1.GetControllerOfNoCopy(set))
	if !ok || set.UID != ref.UID {
		return
	}
	object, exists, err = c.deployments.GetByKey(owner.Key)
	if err != nil || !exists || !recreates(object.(*appsv1.Deployment)) {
		return
	}
	left, err := childindex.ControlledBy[*corev1.Pod](c.pods, set.UID)
	if err != nil {
		c.logger.Error(err, "Cannot tell whether pods are left", "replicaSet", klog.KObj(set))
	}
	if err != nil || !anyRuns(left) {
		c.loop.Add(owner.Key)
	}
}
