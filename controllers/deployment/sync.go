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
	if missing := c.setWrites.Missing(key); missing != "" {
		return workloop.RetryAfter(workloop.StaleRetryDelay, missing)
	}
	stale := c.ownWrites.Missing(key)
	d, found, err := c.cached(key)
	if err != nil || !found {
		return err
	}
	selector, limits, err := understand(d)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Ignoring a Deployment that makes no sense until it changes")
		return nil
	}
	r := &rollout{deployment: d, limits: limits, current: none, stale: stale, now: c.clock.Now()}
	if labels.MatchesNothing(selector) {
		return c.refuse(ctx, r)
	}
	sets, err := c.claim(ctx, d, selector)
	if err != nil {
		return err
	}
	r.setSets(sets)
	if d.DeletionTimestamp == nil {
		err = c.act(ctx, r)
	}
	return errors.Join(err, c.report(ctx, r))
}

// act does what the spec asks for, in this order: that the Deployment goes on
// after a pause is reported; whatever happens to the replicas, the new
// ReplicaSet says of itself what it must; a paused Deployment is scaled and
// cleaned up, but not rolled; a rollback changes the template before that is
// rolled out; a new scale is spread over what there is before the rollout goes
// on.
func (c *Controller) act(ctx context.Context, r *rollout) error {
	d := r.deployment
	if r.notePause(); r.progressing != nil && !d.Spec.Paused {
		return nil // the clock starts anew before anything is measured by it
	}
	if err := c.adjustNew(ctx, r); err != nil {
		return err
	}
	to, wished := rollbackWish(d.Annotations)
	switch {
	case d.Spec.Paused && wished:
		return c.rescale(ctx, r)
	case d.Spec.Paused:
		return errors.Join(c.rescale(ctx, r), c.cleanUp(ctx, r))
	case wished:
		return c.rollBack(ctx, r, to)
	case resized(r.limits, r.fleet()):
		return c.rescale(ctx, r)
	}
	r.estimates = true
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
	before := r.fleet()
	to := grow(r.limits, before)
	switch {
	case r.current == none:
		if made, err := c.create(ctx, r, to); err != nil || !made || to > 0 {
			return err
		}
	case to != before.newSize().replicas:
		return c.resize(ctx, r, []change{{r.current, to}})
	}
	if down := shrink(r.limits, r.fleet()); len(down) > 0 {
		return c.resize(ctx, r, down)
	}
	return c.cleanUpWhenComplete(ctx, r)
}

// recreate takes the next step of a rollout that must not run old and new pods
// at once: everything old to 0, then wait until nothing old runs, then up.
func (c *Controller) recreate(ctx context.Context, r *rollout) error {
	if down := stop(r.fleet()); len(down) > 0 {
		return c.resize(ctx, r, down)
	}
	pods, err := c.podsOf(r.oldSets())
	if err != nil {
		return err
	}
	if !stopped(r.oldSets(), pods) {
		return nil
	}
	if r.current == none {
		if made, err := c.create(ctx, r, r.limits.replicas); err != nil || !made {
			return err
		}
	} else if r.fleet().newSize().replicas != r.limits.replicas {
		if err := c.resize(ctx, r, []change{{r.current, r.limits.replicas}}); err != nil {
			return err
		}
	}
	return c.cleanUpWhenComplete(ctx, r)
}

// rescale gives the ReplicaSets the sizes that the scale of the Deployment asks
// for, without getting on with the rollout.
func (c *Controller) rescale(ctx context.Context, r *rollout) error {
	return c.resize(ctx, r, rescale(r.limits, r.fleet(), rolls(r.deployment), int(r.deployment.Status.Replicas)))
}

func (c *Controller) cleanUpWhenComplete(ctx context.Context, r *rollout) error {
	if !complete(r.deployment, r.limits, &r.deployment.Status) {
		return nil
	}
	return c.cleanUp(ctx, r)
}

// cached returns the Deployment under key. Everything remembered of one that is
// gone is dropped.
func (c *Controller) cached(key string) (d *appsv1.Deployment, found bool, err error) {
	object, exists, err := c.deployments.GetByKey(key)
	if err != nil {
		return nil, false, fmt.Errorf("looking up Deployment %s: %w", key, err)
	}
	if !exists {
		c.setWrites.ForgetKey(key)
		c.ownWrites.ForgetKey(key)
		return nil, false, nil
	}
	return object.(*appsv1.Deployment), true, nil
}

// understand reads what of a spec can be malformed.
func understand(d *appsv1.Deployment) (labels.Selector, limits, error) {
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
