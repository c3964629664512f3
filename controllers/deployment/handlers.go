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
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/tombstone"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// eventHandlers returns the event handlers for Deployments, ReplicaSets and pods. The handlers
// add the keys of Deployments to the work queue.
func (c *Controller) eventHandlers(config Config) []workloop.EventHandler {
	return []workloop.EventHandler{
		{Resource: deploymentsResource, Informer: config.Deployments, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.enqueue(object.(*appsv1.Deployment)) },
			UpdateFunc: func(old, object any) { c.deploymentUpdated(old.(*appsv1.Deployment), object.(*appsv1.Deployment)) },
			DeleteFunc: c.deploymentDeleted,
		}},
		{Resource: replicaSetsResource, Informer: config.ReplicaSets, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.replicaSetAdded(object.(*appsv1.ReplicaSet)) },
			UpdateFunc: func(old, object any) { c.replicaSetUpdated(old.(*appsv1.ReplicaSet), object.(*appsv1.ReplicaSet)) },
			DeleteFunc: c.replicaSetDeleted,
		}},
		{Resource: "pods", Informer: config.Pods, Handler: cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(old, object any) { c.podUpdated(old.(*corev1.Pod), object.(*corev1.Pod)) },
			DeleteFunc: c.podDeleted,
		}},
	}
}

// enqueue adds the key of a Deployment, "namespace/name", to the work queue.
func (c *Controller) enqueue(d *appsv1.Deployment) { c.loop.Add(ownership.IDOf(d).Key) }

// deploymentUpdated enqueues an updated Deployment.
//
// If a Deployment was deleted and recreated while the watch was interrupted, the informer reports
// one update with different UIDs. deploymentUpdated then drops the record of the controller's own
// writes for the deleted Deployment; see forget.
func (c *Controller) deploymentUpdated(old, d *appsv1.Deployment) {
	if old.UID != d.UID {
		c.forget(ownership.IDOf(old))
	}
	c.enqueue(d)
}

// deploymentDeleted enqueues the key of a deleted Deployment. It also drops the record of the
// controller's own writes for this Deployment; see forget.
//
// A sync of the Deployment may still be running, and may record another write. The sync of the
// enqueued key finds no Deployment and drops the record of this write too.
func (c *Controller) deploymentDeleted(object any) {
	if d, ok := tombstone.LastKnown[*appsv1.Deployment](c.logger, object); ok {
		c.forget(ownership.IDOf(d))
		c.enqueue(d)
	}
}

// forget drops the record of the controller's own writes for a deleted Deployment. Syncs use this
// record to detect a stale informer cache.
func (c *Controller) forget(owner ownership.ID) {
	c.replicaSetWrites.Forget(owner)
	c.deploymentWrites.Forget(owner)
}

// replicaSetAdded enqueues the Deployment that controls an added ReplicaSet. For an orphan, it
// enqueues the Deployments that could adopt the orphan.
func (c *Controller) replicaSetAdded(set *appsv1.ReplicaSet) {
	if ref := metav1.GetControllerOfNoCopy(set); ref != nil {
		c.enqueueController(set.Namespace, ref)
	} else {
		c.ownerLookup.EnqueueMatching(c.logger, set, c.loop.Add)
	}
}

// replicaSetUpdated enqueues the Deployment that controls a changed ReplicaSet. If the
// controllerRef has changed, it also enqueues the former Deployment.
//
// For an orphan, replicaSetUpdated enqueues the Deployments that could adopt the orphan. It does
// so only after a change of the orphan's controllerRef, UID or labels.
func (c *Controller) replicaSetUpdated(old, set *appsv1.ReplicaSet) {
	if set.ResourceVersion == old.ResourceVersion {
		return // a periodic resync, not a change
	}
	oldRef, ref := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(set)
	controllerRefChanged := !equality.Semantic.DeepEqual(oldRef, ref)
	if controllerRefChanged {
		c.enqueueController(old.Namespace, oldRef)
	}
	switch {
	case ref != nil:
		c.enqueueController(set.Namespace, ref)
	case controllerRefChanged || set.UID != old.UID || !maps.Equal(old.Labels, set.Labels):
		c.ownerLookup.EnqueueMatching(c.logger, set, c.loop.Add)
	}
}

// replicaSetDeleted enqueues the Deployment that controlled a deleted ReplicaSet.
func (c *Controller) replicaSetDeleted(object any) {
	if set, ok := tombstone.LastKnown[*appsv1.ReplicaSet](c.logger, object); ok {
		c.enqueueController(set.Namespace, metav1.GetControllerOfNoCopy(set))
	}
}

// enqueueController enqueues the Deployment that the owner reference ref names. It does nothing if
// this Deployment is not in the cache.
func (c *Controller) enqueueController(namespace string, ref *metav1.OwnerReference) {
	if owner, ok := c.ownerLookup.ResolveControllerRef(namespace, ref); ok {
		c.loop.Add(owner.Key)
	}
}

// podUpdated handles an updated pod. It calls podEnded if the pod has become terminal, or if another
// pod with the same name has replaced it. A Deployment with the strategy Recreate may be waiting for
// the end of the pod.
func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if old.UID != pod.UID || podutil.Terminal(pod) && !podutil.Terminal(old) {
		c.podEnded(old)
	}
}

// podDeleted handles a deleted pod. It enqueues a Deployment with the strategy Recreate that may
// be waiting for the end of the pod; see podEnded.
func (c *Controller) podDeleted(object any) {
	if pod, ok := tombstone.LastKnown[*corev1.Pod](c.logger, object); ok {
		c.podEnded(pod)
	}
}

// podEnded enqueues a Recreate Deployment when the last running pod of a ReplicaSet has ended.
// The rollout may be waiting for the end of the old pods. A pod has ended if it is terminal or
// deleted.
//
// While spec or status of the ReplicaSet has replicas, podEnded does nothing. The rollout then
// also waits for a change of the ReplicaSet, and the event of that change enqueues the
// Deployment. Without this rule, podEnded would list the pods each time a pod ends.
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
	owner, ok := c.ownerLookup.ResolveControllerRef(set.Namespace, metav1.GetControllerOfNoCopy(set))
	if !ok || set.UID != ref.UID {
		return
	}
	object, exists, err = c.deployments.GetByKey(owner.Key)
	if err != nil || !exists || !recreates(object.(*appsv1.Deployment)) {
		return
	}
	left, err := childindex.ControlledBy[*corev1.Pod](c.pods, set.UID)
	if err != nil {
		c.logger.Error(err, "Listing the pods of a ReplicaSet failed", "replicaSet", klog.KObj(set))
	}
	if err != nil || !anyRunning(left) {
		c.loop.Add(owner.Key)
	}
}
