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

// replicaFailure is the type of the condition that reports a failed create or delete of a pod.
// ReplicaSets and ReplicationControllers use the same type.
const replicaFailure = "ReplicaFailure"

// syncResult contains the results of one sync of an owner. The owner's new status is computed
// from these results.
type syncResult struct {
	owner       Owner
	active      []*corev1.Pod
	terminating int
	// failure is the error of the pod creates or deletes of this sync. It is nil if none failed.
	failure error
	now     time.Time
}

// status returns the owner's new status. From the existing status, the argument base, it takes
// only the conditions. All other fields come from this sync.
func (result syncResult) status(base Status, countsTerminating bool) Status {
	status := Status{
		Replicas:           int32(len(result.active)),
		ObservedGeneration: result.owner.Object.GetGeneration(),
		Conditions:         result.conditions(base.Conditions),
	}
	if countsTerminating {
		status.Terminating = ptr.To(int32(result.terminating))
	}
	wanted := labels.ValidatedSetSelector(result.owner.Template.Labels)
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

// conditions returns the existing conditions in the argument base, with or without the condition
// ReplicaFailure. The result has the condition if a pod create or delete of this sync failed.
//
// If the argument base already has the condition and this sync failed too, the condition stays as
// it is. It keeps its reason, message and lastTransitionTime.
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

// updateStatus writes the owner's new status if it has changed. After a conflict, it reads the
// owner from the API server and tries once more.
func (c *Controller) updateStatus(ctx context.Context, result syncResult) error {
	err := c.writeStatus(ctx, result.owner, result)
	if !apierrors.IsConflict(err) {
		return err
	}
	object := result.owner.Object
	fresh, err := c.kind.Live(ctx, object.GetNamespace(), object.GetName())
	if err != nil {
		return fmt.Errorf("reading %s from the API server after a status conflict: %w", c.describe(result.owner), err)
	}
	if fresh.Object.GetUID() != object.GetUID() {
		return fmt.Errorf("%s was recreated: found UID %s on the API server, expected UID %s as in the informer cache", c.describe(result.owner), fresh.Object.GetUID(), object.GetUID())
	}
	if fresh.Status.ObservedGeneration > object.GetGeneration() {
		return fmt.Errorf("the status of %s has observedGeneration %d, which is newer than generation %d of this sync",
			c.describe(result.owner), fresh.Status.ObservedGeneration, object.GetGeneration())
	}
	return c.writeStatus(ctx, fresh, result)
}

// writeStatus writes the owner's new status if it differs from the existing status. The argument
// base is the owner from the cache or, after a conflict, from the API server.
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
