package deployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// updateStatus writes the Deployment's status if it has changed. It also enqueues the Deployment
// for the time of the next progress deadline check.
func (c *Controller) updateStatus(ctx context.Context, r *rollout) error {
	if r.deploymentWritten {
		return nil
	}
	status := r.status()
	// If the create of the new ReplicaSet failed, the work queue retries the key with backoff. A
	// check of the deadline must not cause an earlier retry.
	if deadline, limited := deadlineOf(r.deployment); limited && r.estimateProgress && !r.createFailed {
		progressing := findCondition(status.Conditions, appsv1.DeploymentProgressing)
		if wait, running := untilDeadlineCheck(progressing, deadline, r.now); running && !complete(r.deployment, r.limits, &status) {
			c.loop.AddAfter(ownership.IDOf(r.deployment).Key, max(deadlineCheckDelay, wait))
		}
	}
	return c.writeStatus(ctx, r, status)
}

// writeStatus writes the Deployment's status and its revision annotation in one request. It
// sends no request if neither has changed. The API server accepts changes of annotations in an
// update of the status subresource.
func (c *Controller) writeStatus(ctx context.Context, r *rollout, status appsv1.DeploymentStatus) error {
	d := *r.deployment
	d.Status = status
	if set := r.newSet(); set != nil && d.DeletionTimestamp == nil {
		if _, has := revisionOf(set.Annotations); has {
			d.Annotations = withEntries(d.Annotations, map[string]string{revisionAnnotation: set.Annotations[revisionAnnotation]})
		}
	}
	if equality.Semantic.DeepEqual(r.deployment.Status, status) && d.Annotations[revisionAnnotation] == r.deployment.Annotations[revisionAnnotation] {
		return nil
	}
	if c.deferWrite(ctx, r, "status") {
		return nil
	}
	written, err := c.client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, &d, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("writing the status of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	c.deploymentWrites.Wrote(ownership.IDOf(&d), deploymentsResource, written.ResourceVersion)
	return nil
}

// deferWrite reports whether a write to the Deployment must wait because the informer cache is
// stale. With a stale cache, the API server would reject the write with a conflict.
//
// If the write must wait, deferWrite enqueues the Deployment after StaleRetryDelay. The argument
// what is the name of the write for the log, such as "status".
func (c *Controller) deferWrite(ctx context.Context, r *rollout, what string) bool {
	if r.stale == "" {
		return false
	}
	klog.FromContext(ctx).V(4).Info("Deferring a write to the Deployment", "write", what, "reason", r.stale)
	c.loop.AddAfter(ownership.IDOf(r.deployment).Key, workloop.StaleRetryDelay)
	return true
}

// reportSelectsAll emits a warning event for a Deployment with an empty selector. The controller
// does not reconcile such a Deployment. It only writes observedGeneration to the status.
func (c *Controller) reportSelectsAll(ctx context.Context, r *rollout) error {
	d := r.deployment
	c.events.Event(d, corev1.EventTypeWarning, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")
	status := *d.Status.DeepCopy()
	status.ObservedGeneration = max(status.ObservedGeneration, d.Generation)
	return c.writeStatus(ctx, r, status)
}
