package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// sync brings the Deployment under key one step closer to its spec.
//
//  1. What this controller last wrote to the Deployment's ReplicaSets must be in
//     the cache: sizes that are added up from before a write are wrong.
//  2. A Deployment that selects everything is refused.
//  3. ReplicaSets are claimed. A failure ends the sync: nothing may be decided
//     from a wrong idea of which there are.
//  4. One that is terminating has its status written, and no more.
//  5. Its spec is acted on.
//  6. Status is written, also when 5 failed.
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
		klog.FromContext(ctx).Error(err, "Ignoring a Deployment that makes no sense until it changes")
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

// syncSpec does what the spec asks for, in this order: that the Deployment goes on
// after a pause is reported; whatever happens to the replicas, the new
// ReplicaSet says of itself what it must; a paused Deployment is scaled and
// cleaned up, but not rolled; a rollback changes the template before that is
// rolled out; a new scale is spread over what there is before the rollout goes
// on.
func (c *Controller) syncSpec(ctx context.Context, r *rollout) error {
	d := r.deployment
	if r.setPausedOrResumed(); r.progressing != nil && !d.Spec.Paused {
		return nil // the clock starts anew before anything is measured by it
	}
	if err := c.adjustNewReplicaSet(ctx, r); err != nil {
		return err
	}
	requested, rollback := rollbackTo(d.Annotations)
	switch {
	case d.Spec.Paused && rollback:
		return c.rescale(ctx, r)
	case d.Spec.Paused:
		return errors.Join(c.rescale(ctx, r), c.cleanUp(ctx, r))
	case rollback:
		return c.rollBack(ctx, r, requested)
	case isScalingEvent(r.limits, r.replicaSetSizes()):
		return c.rescale(ctx, r)
	}
	r.estimateProgress = true
	switch {
	case rolls(d):
		return c.roll(ctx, r)
	case recreates(d):
		return c.recreate(ctx, r)
	default:
		return fmt.Errorf("the strategy of Deployment %s/%s is %q, expected RollingUpdate or Recreate", d.Namespace, d.Name, d.Spec.Strategy.Type)
	}
}

// roll takes the next step of a rolling update: up, and only when nothing goes
// up, down. Either way the next step waits for what comes of it.
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
	if down := scaleDownOld(r.limits, r.replicaSetSizes()); len(down) > 0 {
		return c.resize(ctx, r, down)
	}
	return c.cleanUpWhenComplete(ctx, r)
}

// recreate takes the next step of a rollout that must not run old and new pods
// at once: everything old to 0, then wait until nothing old runs, then up.
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

// rescale gives the ReplicaSets the sizes that the scale of the Deployment asks
// for, without getting on with the rollout.
func (c *Controller) rescale(ctx context.Context, r *rollout) error {
	return c.resize(ctx, r, rescale(r.limits, r.replicaSetSizes(), rolls(r.deployment), int(r.deployment.Status.Replicas)))
}

func (c *Controller) cleanUpWhenComplete(ctx context.Context, r *rollout) error {
	if !complete(r.deployment, r.limits, &r.deployment.Status) {
		return nil
	}
	return c.cleanUp(ctx, r)
}

// cachedDeployment returns the Deployment under key. Everything remembered of one that is
// gone is dropped.
func (c *Controller) cachedDeployment(key string) (d *appsv1.Deployment, found bool, err error) {
	object, exists, err := c.deployments.GetByKey(key)
	if err != nil {
		return nil, false, fmt.Errorf("looking up Deployment %s: %w", key, err)
	}
	if !exists {
		c.replicaSetWrites.ForgetKey(key)
		c.deploymentWrites.ForgetKey(key)
		return nil, false, nil
	}
	return object.(*appsv1.Deployment), true, nil
}

// parseSpec reads what of a spec can be malformed.
func parseSpec(d *appsv1.Deployment) (labels.Selector, limits, error) {
	selector, err := ownership.SelectorOf(d.Spec.Selector)
	if err != nil {
		return nil, limits{}, fmt.Errorf("reading the spec of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	l, err := limitsOf(d)
	if err != nil {
		return nil, limits{}, fmt.Errorf("reading the strategy of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return selector, l, nil
}

// podsOf returns the pods of ReplicaSets, whatever state they are in.
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
