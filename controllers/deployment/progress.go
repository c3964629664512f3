package deployment

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deadlineCheckDelay is the time from the progress deadline to the sync that checks it.
// Without this delay, a timer that fires too early would find that the deadline has not passed
// yet.
const deadlineCheckDelay = 100 * time.Millisecond

// deadlineOf returns the progress deadline of a Deployment. The result ok is false if it has
// none.
func deadlineOf(d *appsv1.Deployment) (deadline time.Duration, ok bool) {
	seconds := d.Spec.ProgressDeadlineSeconds
	if seconds == nil || *seconds == math.MaxInt32 {
		return 0, false
	}
	return time.Duration(*seconds) * time.Second, true
}

// complete reports whether the rollout is complete according to status. All replicas must be
// updated and available, no other replicas may exist, and the latest generation must be
// observed.
func complete(d *appsv1.Deployment, l limits, status *appsv1.DeploymentStatus) bool {
	return int(status.UpdatedReplicas) == l.replicas &&
		int(status.Replicas) == l.replicas &&
		int(status.AvailableReplicas) == l.replicas &&
		status.ObservedGeneration >= d.Generation
}

// progressed reports whether the rollout of a Deployment has made progress from one status to
// the next.
func progressed(before, after *appsv1.DeploymentStatus) bool {
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas ||
		after.AvailableReplicas > before.AvailableReplicas
}

// untilDeadlineCheck returns the time until the progress deadline must be checked. It is 0 or
// negative if the check is due.
//
// The deadline begins at the last update of c, which is the condition Progressing. The result
// ok is false if no deadline is running: if c is nil, after a complete rollout, or after the
// deadline was exceeded.
func untilDeadlineCheck(c *appsv1.DeploymentCondition, deadline time.Duration, now time.Time) (wait time.Duration, ok bool) {
	if c == nil || c.Reason == reasonNewReplicaSetAvailable || c.Reason == reasonProgressDeadlineExceeded {
		return 0, false
	}
	return c.LastUpdateTime.Add(deadline).Add(deadlineCheckDelay).Sub(now), true
}

// progressConditions returns the conditions of the new status with an updated condition
// Progressing.
//
// To find out whether the rollout has made progress, it compares the replica counts of the new
// status with those of the status that the Deployment has.
func (r *rollout) progressConditions(after *appsv1.DeploymentStatus) []appsv1.DeploymentCondition {
	deadline, limited := deadlineOf(r.deployment)
	if !limited {
		return withoutCondition(after.Conditions, appsv1.DeploymentProgressing)
	}
	before := findCondition(after.Conditions, appsv1.DeploymentProgressing)
	if before != nil && before.Reason == reasonNewReplicaSetAvailable && after.Replicas == after.UpdatedReplicas {
		return after.Conditions // the rollout is complete, and pods that fail later do not begin a new one
	}
	wait, running := untilDeadlineCheck(before, deadline, r.now)
	switch {
	case complete(r.deployment, r.limits, after):
		return withCondition(after.Conditions, r.progressingCondition(corev1.ConditionTrue, reasonNewReplicaSetAvailable, "%s has successfully progressed.", r.progressSubject()))
	case progressed(&r.deployment.Status, after):
		return withRefreshedCondition(after.Conditions, r.progressingCondition(corev1.ConditionTrue, reasonReplicaSetUpdated, "%s is progressing.", r.progressSubject()))
	case running && wait <= 0:
		return withCondition(after.Conditions, r.progressingCondition(corev1.ConditionFalse, reasonProgressDeadlineExceeded, "%s has timed out progressing.", r.progressSubject()))
	default:
		return after.Conditions
	}
}

// progressSubject returns the object that messages of the condition Progressing mention.
func (r *rollout) progressSubject() string {
	if set := r.newSet(); set != nil {
		return fmt.Sprintf("ReplicaSet %q", set.Name)
	}
	return fmt.Sprintf("Deployment %q", r.deployment.Name)
}

// progressingCondition returns a condition Progressing whose times are the time of this sync.
func (r *rollout) progressingCondition(status corev1.ConditionStatus, reason, format string, args ...any) appsv1.DeploymentCondition {
	now := metav1.NewTime(r.now)
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: status, LastUpdateTime: now, LastTransitionTime: now,
		Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// setProgressing sets the condition Progressing that this sync reports. Without a progress
// deadline it does nothing: such a Deployment has no such condition.
func (r *rollout) setProgressing(status corev1.ConditionStatus, reason, format string, args ...any) {
	if _, limited := deadlineOf(r.deployment); limited {
		c := r.progressingCondition(status, reason, format, args...)
		r.progressing = &c
	}
}

// setPausedOrResumed sets the condition Progressing if the Deployment was paused or resumed
// since the last status update. The progress deadline does not run while the Deployment is
// paused. If the deadline was already exceeded, the condition keeps the reason
// ProgressDeadlineExceeded.
func (r *rollout) setPausedOrResumed() {
	c := findCondition(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if c != nil && c.Reason == reasonProgressDeadlineExceeded {
		return
	}
	reported := c != nil && c.Reason == reasonPaused
	switch paused := r.deployment.Spec.Paused; {
	case paused && !reported:
		r.setProgressing(corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !paused && reported:
		r.setProgressing(corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	}
}

// setFoundNewReplicaSet sets the condition Progressing if it is missing although the new
// ReplicaSet exists.
//
// This happens if progressDeadlineSeconds was set after the ReplicaSet was created. The
// lastUpdateTime of the condition starts the progress deadline.
func (r *rollout) setFoundNewReplicaSet() {
	before := findCondition(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if set := r.newSet(); set != nil && before == nil && r.progressing == nil {
		r.setProgressing(corev1.ConditionTrue, reasonFoundNewReplicaSet, "Found new replica set %q", set.Name)
	}
}
