package replicaset

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podcontrol"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/slowstart"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// sync reconciles the owner with the given key, "namespace/name", in these steps:
//
//  1. If the caches do not contain this controller's last writes for the owner, the sync is retried
//     later. For ReplicationControllers (ReadsOwnWrites is false), this rule applies only after
//     unmet expectations have expired. In that case the pods exist, but their events are late.
//  2. Expectations are checked before the pods are listed. If the list came first, an event
//     after the list could satisfy the expectations although its pod is not in the list.
//  3. Pods are adopted and released. After an error the sync ends, because the list of
//     pods is incomplete.
//  4. Pods are created or deleted, unless the owner is terminating or its expectations
//     are unmet.
//  5. The key is enqueued for the time at which the next pod becomes available, and for
//     the time at which the expectations expire. No event occurs at these times.
//  6. The status is written, even if step 4 failed or was skipped.
func (c *Controller) sync(ctx context.Context, key string) error {
	stale := c.writes.StaleReason(key)
	if c.traits.ReadsOwnWrites && stale != "" {
		return workloop.RetryAfter(workloop.StaleRetryDelay, stale)
	}
	owner, found, err := c.cachedOwner(ctx, key)
	if err != nil || !found {
		return err
	}
	id := owner.ID()
	unobserved := stale != "" && c.expectations.Unmet(id)
	satisfied := c.expectations.Satisfied(id)
	if unobserved && satisfied {
		return workloop.RetryAfter(workloop.StaleRetryDelay, stale)
	}
	pods, err := c.claim(ctx, owner)
	if err != nil {
		return err
	}
	result := syncResult{owner: owner, active: pods.active, terminating: pods.terminating}
	if satisfied && !owner.Terminating() {
		result.failure = c.scale(ctx, owner, pods.active)
	}
	result.now = c.clock.Now()
	if wait, ok := nextAvailable(pods.active, owner.MinReady, result.now); ok {
		c.loop.AddAfter(key, wait)
	}
	if remaining := c.expectations.Remaining(id); remaining > 0 {
		c.loop.AddAfter(key, remaining)
	}
	return errors.Join(result.failure, c.updateStatus(ctx, result))
}

// cachedOwner returns the owner with the given key from the informer cache. The result found is
// false if the owner does not exist or is invalid.
//
// If the owner does not exist, cachedOwner drops the expectations for this key. It also drops the
// record of the controller's own writes.
func (c *Controller) cachedOwner(ctx context.Context, key string) (owner Owner, found bool, err error) {
	object, exists, err := c.owners.GetByKey(key)
	if err != nil {
		return Owner{}, false, fmt.Errorf("looking up %s %s in the informer cache: %w", c.traits.GVK.Kind, key, err)
	}
	if !exists {
		c.expectations.ForgetKey(key)
		c.writes.ForgetKey(key)
		return Owner{}, false, nil
	}
	owner, err = c.kind.Owner(object)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Ignoring an invalid object until it changes")
		return Owner{}, false, nil
	}
	return owner, true, nil
}

// ownedPods contains the active pods of one owner, and the number of its terminating pods. A sync
// computes the owner's new status from them.
type ownedPods struct {
	active      []*corev1.Pod
	terminating int
}

// claim adopts and releases active pods for an owner. It returns the pods that the owner then
// controls.
func (c *Controller) claim(ctx context.Context, owner Owner) (ownedPods, error) {
	pods, err := childindex.Candidates[*corev1.Pod](c.pods, owner.Object)
	if err != nil {
		return ownedPods{}, err
	}
	var set ownedPods
	candidates := make([]*corev1.Pod, 0, len(pods))
	for _, pod := range pods {
		switch {
		case podutil.Active(pod):
			candidates = append(candidates, pod)
		case podutil.Terminating(pod) && ownership.Decide(owner.Object, pod, owner.Selector) == ownership.Keep:
			set.terminating++
		}
	}
	set.active, err = c.claimer(owner).Claim(ctx, candidates)
	return set, err
}

// claimer returns the Claimer that adopts and releases pods in one sync of the owner.
func (c *Controller) claimer(owner Owner) ownership.Claimer[*corev1.Pod] {
	return ownership.Claimer[*corev1.Pod]{
		Owner:    owner.Object,
		GVK:      c.traits.GVK,
		Selector: owner.Selector,
		Live: func(ctx context.Context) (metav1.Object, error) {
			live, err := c.kind.Live(ctx, owner.Object.GetNamespace(), owner.Object.GetName())
			if err != nil {
				return nil, err
			}
			return live.Object, nil
		},
		Patch: func(ctx context.Context, pod *corev1.Pod, data []byte) error {
			patched, err := c.control.Patch(ctx, pod, data)
			if err != nil {
				return err
			}
			c.writes.Wrote(owner.ID(), podsResource, patched.ResourceVersion)
			return nil
		},
	}
}

// scale creates or deletes pods, so that the owner gets the desired number of active pods. It
// creates or deletes at most c.burst pods. The argument active contains the existing active
// pods.
func (c *Controller) scale(ctx context.Context, owner Owner, active []*corev1.Pod) error {
	step := plan(owner.Replicas, len(active), c.burst)
	switch {
	case step.creates > 0:
		klog.FromContext(ctx).V(2).Info("Too few pods", "wanted", owner.Replicas, "active", len(active), "creating", step.creates)
		return c.create(ctx, owner, step.creates)
	case step.deletes > 0:
		klog.FromContext(ctx).V(2).Info("Too many pods", "wanted", owner.Replicas, "active", len(active), "deleting", step.deletes)
		relatedPods, err := c.relatedPodsByNode(owner, active, step.deletes)
		if err != nil {
			return err
		}
		return c.delete(ctx, owner, podsToDelete(active, step.deletes, relatedPods, c.clock.Now()))
	default:
		return nil
	}
}

// create creates n pods for an owner, with slow start.
//
// If the namespace is terminating, the API server rejects the creates, and their expectations
// stay unmet. The controller therefore does not retry until the expectations expire. By then,
// the owner is usually deleted too.
func (c *Controller) create(ctx context.Context, owner Owner, n int) error {
	id := owner.ID()
	c.expectations.ExpectCreations(id, n)
	started, err := slowstart.Run(ctx, n, func(ctx context.Context) error {
		pod, err := c.control.Create(ctx, owner.Object, c.traits.GVK, owner.Template)
		if err == nil {
			c.expectations.Created(id, pod.UID, pod.ResourceVersion)
			c.writes.Wrote(id, podsResource, pod.ResourceVersion)
		} else if !podcontrol.NamespaceTerminating(err) {
			c.expectations.CreationsFailed(id, 1)
		}
		return err
	})
	if podcontrol.NamespaceTerminating(err) {
		klog.FromContext(ctx).V(2).Info("Namespace is terminating, not creating pods", "skipped", n)
		return nil
	}
	c.expectations.CreationsFailed(id, n-started)
	return err
}

// delete deletes the given pods concurrently, and returns the first error. NotFound is not an
// error: the pod is already gone.
func (c *Controller) delete(ctx context.Context, owner Owner, pods []*corev1.Pod) error {
	id := owner.ID()
	uids := make([]types.UID, len(pods))
	for i, pod := range pods {
		uids[i] = pod.UID
	}
	c.expectations.ExpectDeletions(id, uids)
	var calls sync.WaitGroup
	var once sync.Once
	var first error
	for _, pod := range pods {
		calls.Go(func() {
			err := c.control.Delete(ctx, owner.Object, pod)
			if err == nil {
				c.writes.Deleted(id, podsResource, cache.MetaObjectToName(pod).String(), pod.UID)
				return
			}
			c.expectations.DeletionObserved(id, pod.UID)
			if !apierrors.IsNotFound(err) {
				once.Do(func() { first = err })
			}
		})
	}
	calls.Wait()
	return first
}

// relatedPodsByNode returns, for each node name, the number of active pods of the owner and its
// siblings. Scale-down deletes pods on nodes with high numbers first.
//
// If scale-down deletes all active pods, their order is irrelevant, and the result is nil. If no
// object controls the owner, the result is empty, as in upstream.
func (c *Controller) relatedPodsByNode(owner Owner, active []*corev1.Pod, deletes int) (map[string]int, error) {
	if deletes >= len(active) {
		return nil, nil
	}
	siblings, err := c.kind.Siblings(owner)
	if err != nil {
		return nil, err
	}
	relatedPods := map[string]int{}
	for _, sibling := range siblings {
		pods, err := childindex.ControlledBy[*corev1.Pod](c.pods, sibling)
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			if podutil.Active(pod) {
				relatedPods[pod.Spec.NodeName]++
			}
		}
	}
	return relatedPods, nil
}

// describe returns the kind and the key of an owner for messages, such as "ReplicaSet
// default/web".
func (c *Controller) describe(owner Owner) string {
	return c.traits.GVK.Kind + " " + owner.ID().Key
}
