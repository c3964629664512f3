package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// sync reconciles the Deployment with the given key, "namespace/name", in these steps:
//
//  1. If the cache does not contain this controller's last writes to the Deployment's
//     ReplicaSets, the sync is retried later. With a stale cache, sums of replicas would
//     be wrong.
//  2. A Deployment with an empty selector is not reconciled.
//  3. ReplicaSets are adopted and released. After an error the sync ends, because the
//     list of ReplicaSets is incomplete.
//  4. Unless the Deployment is terminating, syncSpec reconciles the spec.
//  5. The status is written, even if step 4 failed.
func (c *Controller) sync(ctx context.Context, key string) error {
	if stale := c.replicaSetWrites.StaleReason(key); stale != "" {
		return workloop.RetryAfter(workloop.StaleRetryDelay, stale)
	}
	stale := c.deploymentWrites.StaleReason(key)
	d, found, err := c.cachedDeployment(key)
	if err != nil || !found {
		return err
	}
	selector, limits, err := parseSpec(d)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Ignoring an invalid Deployment until it changes")
		return nil
	}
	r := &rollout{deployment: d, limits: limits, newIndex: none, stale: stale, now: c.clock.Now()}
	if labels.MatchesNothing(selector) {
		return c.reportSelectsAll(ctx, r)
	}
	sets, err := c.claim(ctx, d, selector)
	if err != nil {
		return err
	}
	r.setSets(sets)
	if d.DeletionTimestamp == nil {
		err = c.syncSpec(ctx, r)
	}
	return errors.Join(err, c.updateStatus(ctx, r))
}

// syncSpec reconciles the Deployment's spec. It goes through these steps in order:
//
//   - If the Deployment was just resumed, this sync only writes the condition Progressing to the
//     status. The write restarts the progress deadline.
//   - If the new ReplicaSet exists, it gets its revision, annotations and
//     minReadySeconds.
//   - If the Deployment is paused, this sync scales the ReplicaSets and does not
//     continue the rollout. It deletes old ReplicaSets above revisionHistoryLimit,
//     unless a rollback is requested.
//   - If a rollback is requested, this sync changes the pod template. The rollout
//     follows in the next sync.
//   - If spec.replicas has changed, this sync scales all ReplicaSets. The rollout
//     continues in the next sync.
//   - Otherwise, this sync takes the next step of the rollout.
func (c *Controller) syncSpec(ctx context.Context, r *rollout) error {
	d := r.deployment
	if r.setPausedOrResumed(); r.progressing != nil && !d.Spec.Paused {
		return nil // the progress deadline must restart before the next sync checks it
	}
	requested, rollback := rollbackTo(d.Annotations)
	err := c.adjustNewReplicaSet(ctx, r)
	scales := isScalingEvent(r.limits, r.replicaSetSizes())
	r.estimateProgress = !d.Spec.Paused && !rollback && !scales
	switch {
	case err != nil:
		return err // the status is written nevertheless, so progress must count
	case d.Spec.Paused && rollback:
		return c.rescale(ctx, r)
	case d.Spec.Paused:
		return errors.Join(c.rescale(ctx, r), c.cleanUp(ctx, r))
	case rollback:
		return c.rollBack(ctx, r, requested)
	case scales:
		return c.rescale(ctx, r)
	}
	switch {
	case rolls(d):
		return c.roll(ctx, r)
	case recreates(d):
		return c.recreate(ctx, r)
	default:
		return fmt.Errorf("found spec.strategy.type %q in Deployment %s/%s; expected RollingUpdate or Recreate", d.Spec.Strategy.Type, d.Namespace, d.Name)
	}
}

// roll takes the next step of a rolling update. It scales up the new ReplicaSet. If the new
// ReplicaSet cannot grow, roll scales down the old ReplicaSets. The following step is left to
// the next sync. It scales no old ReplicaSet down while the new one shrinks.
func (c *Controller) roll(ctx context.Context, r *rollout) error {
	before := r.replicaSetSizes()
	to := scaleUpNew(r.limits, before)
	switch {
	case r.newIndex == none:
		if made, err := c.create(ctx, r, to); err != nil || !made || to > 0 {
			return err
		}
	case to != before.newSize().replicas:
		return c.resize(ctx, r, []change{{r.newIndex, to}})
	}
	if set := r.newSet(); set != nil && isShrinking(set) {
		return nil
	}
	if down := scaleDownOld(r.limits, r.replicaSetSizes()); len(down) > 0 {
		return c.resize(ctx, r, down)
	}
	return c.cleanUpWhenComplete(ctx, r)
}

// isShrinking reports whether the status of a ReplicaSet may count pods that the ReplicaSet controller
// still deletes. The ReplicaSet was then scaled down, or down and up again, since its status was
// written. A status of the current generation may count such pods too, but nothing shows it.
func isShrinking(set *appsv1.ReplicaSet) bool {
	return set.Status.ObservedGeneration < set.Generation && set.Status.Replicas >= max(1, ptr.Deref(set.Spec.Replicas, 1))
}

// recreate takes the next step of a rollout with the strategy Recreate:
//
//   - If an old ReplicaSet has replicas in its spec, recreate scales it to 0.
//   - If a pod of an old ReplicaSet is still running, recreate does nothing.
//   - Otherwise, recreate creates the new ReplicaSet or scales it up.
func (c *Controller) recreate(ctx context.Context, r *rollout) error {
	if down := scaleOldToZero(r.replicaSetSizes()); len(down) > 0 {
		return c.resize(ctx, r, down)
	}
	pods, err := c.podsOf(r.oldSets())
	if err != nil {
		return err
	}
	if !oldPodsStopped(r.oldSets(), pods) {
		return nil
	}
	if r.newIndex == none {
		if made, err := c.create(ctx, r, r.limits.replicas); err != nil || !made {
			return err
		}
	} else if r.replicaSetSizes().newSize().replicas != r.limits.replicas {
		if err := c.resize(ctx, r, []change{{r.newIndex, r.limits.replicas}}); err != nil {
			return err
		}
	}
	return c.cleanUpWhenComplete(ctx, r)
}

// rescale scales all ReplicaSets after a change of the Deployment's spec.replicas. It does not
// continue the rollout.
func (c *Controller) rescale(ctx context.Context, r *rollout) error {
	return c.resize(ctx, r, rescale(r.limits, r.replicaSetSizes(), rolls(r.deployment), int(r.deployment.Status.Replicas)))
}

// cleanUpWhenComplete deletes old ReplicaSets above revisionHistoryLimit if the rollout is
// complete. It does nothing during a rollout.
func (c *Controller) cleanUpWhenComplete(ctx context.Context, r *rollout) error {
	if !complete(r.deployment, r.limits, &r.deployment.Status) {
		return nil
	}
	return c.cleanUp(ctx, r)
}

// cachedDeployment returns the Deployment with the given key from the informer cache. If the
// Deployment does not exist, the result found is false. cachedDeployment then also drops the
// record of the controller's own writes for this key.
func (c *Controller) cachedDeployment(key string) (d *appsv1.Deployment, found bool, err error) {
	object, exists, err := c.deployments.GetByKey(key)
	if err != nil {
		return nil, false, fmt.Errorf("looking up Deployment %s in the informer cache: %w", key, err)
	}
	if !exists {
		c.replicaSetWrites.ForgetKey(key)
		c.deploymentWrites.ForgetKey(key)
		return nil, false, nil
	}
	return object.(*appsv1.Deployment), true, nil
}

// parseSpec returns the selector and the rollout limits of a Deployment. No other part of the spec
// can be malformed.
func parseSpec(d *appsv1.Deployment) (labels.Selector, limits, error) {
	selector, err := ownership.SelectorOf(d.Spec.Selector)
	if err != nil {
		return nil, limits{}, fmt.Errorf("parsing the selector of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	l, err := limitsOf(d)
	if err != nil {
		return nil, limits{}, fmt.Errorf("parsing the strategy of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return selector, l, nil
}

// podsOf returns all pods that the given ReplicaSets control. The strategy Recreate needs them,
// because it waits until the pods of the old ReplicaSets have stopped.
func (c *Controller) podsOf(sets []*appsv1.ReplicaSet) ([]*corev1.Pod, error) {
	var all []*corev1.Pod
	for _, set := range sets {
		pods, err := childindex.ControlledBy[*corev1.Pod](c.pods, set.UID)
		if err != nil {
			return nil, err
		}
		all = append(all, pods...)
	}
	return all, nil
}
