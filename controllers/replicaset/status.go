package replicaset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podcontrol"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// replicaFailure is the type of the condition that tells of failing creates and
// deletes; both kinds use the same.
const replicaFailure = "ReplicaFailure"

// syncResult is what one sync has found out, and a status is to report.
type syncResult struct {
	owner       Owner
	active      []*corev1.Pod
	terminating int
	// failure is the error of creating or deleting pods in this sync.
	failure error
	now     time.Time
}

// status reports the finding on top of base. Conditions of other types in base
// stay; everything else is replaced.
func (result syncResult) status(base Status, countsTerminating bool) Status {
	status := Status{
		Replicas:           int32(len(result.active)),
		ObservedGeneration: result.owner.Object.GetGeneration(),
		Conditions:         result.conditions(base.Conditions),
	}
	if countsTerminating {
		status.Terminating = ptr.To(int32(result.terminating))
	}
	wanted := labels.SelectorFromSet(result.owner.Template.Labels)
	for _, pod := range result.active {
		if wanted.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeled++
		}
		if _, ready := podutil.Ready(pod); ready {
			status.Ready++
		}
		if at, ok := podutil.AvailableAt(pod, result.owner.MinReady); ok && !at.After(result.now) {
			status.Available++
		}
	}
	return status
}

// conditions sets or clears ReplicaFailure. One that is set keeps its reason,
// message and time until it is cleared.
func (result syncResult) conditions(base []Condition) []Condition {
	at := slices.IndexFunc(base, func(c Condition) bool { return c.Type == replicaFailure })
	switch {
	case result.failure == nil && at >= 0:
		return slices.Delete(slices.Clone(base), at, at+1)
	case result.failure != nil && at < 0:
		reason := podcontrol.FailedCreate
		if len(result.active) > result.owner.Replicas {
			reason = podcontrol.FailedDelete
		}
		return append(slices.Clone(base), Condition{
			Type:               replicaFailure,
			Status:             corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(result.now),
			Reason:             reason,
			Message:            result.failure.Error(),
		})
	default:
		return base
	}
}

// updateStatus writes the status that follows from f, if it says anything new. After
// a conflict it tries once more on a fresh read.
func (c *Controller) updateStatus(ctx context.Context, result syncResult) error {
	err := c.writeStatus(ctx, result.owner, result)
	if !apierrors.IsConflict(err) {
		return err
	}
	object := result.owner.Object
	fresh, err := c.kind.Live(ctx, object.GetNamespace(), object.GetName())
	if err != nil {
		return fmt.Errorf("re-reading %s after a status conflict: %w", c.describe(result.owner), err)
	}
	if fresh.Object.GetUID() != object.GetUID() {
		return fmt.Errorf("%s has been replaced: it now has UID %s, not %s", c.describe(result.owner), fresh.Object.GetUID(), object.GetUID())
	}
	if fresh.Status.ObservedGeneration > object.GetGeneration() {
		return fmt.Errorf("%s reports generation %d already, this sync acted on %d",
			c.describe(result.owner), fresh.Status.ObservedGeneration, object.GetGeneration())
	}
	return c.writeStatus(ctx, fresh, result)
}

// writeStatus reports f on top of base, which may be newer than what f was
// found from.
func (c *Controller) writeStatus(ctx context.Context, base Owner, result syncResult) error {
	status := result.status(base.Status, c.traits.CountsTerminating)
	if equality.Semantic.DeepEqual(base.Status, status) {
		return nil
	}
	klog.FromContext(ctx).V(4).Info("Writing status", "old", base.Status, "new", status)
	resourceVersion, err := c.kind.UpdateStatus(ctx, base, status)
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", c.describe(result.owner), err)
	}
	c.writes.Wrote(result.owner.ID(), c.traits.Resource, resourceVersion)
	return nil
}
