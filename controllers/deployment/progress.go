package deployment

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deadlineCheckDelay is how long after a deadline it is looked at, so that a timer
// that is early does not find it still ahead.
const deadlineCheckDelay = 100 * time.Millisecond

// deadlineOf returns within what time a rollout must show progress; ok is false
// when there is no such limit.
func deadlineOf(d *appsv1.Deployment) (deadline time.Duration, ok bool) {
	seconds := d.Spec.ProgressDeadlineSeconds
	if seconds == nil || *seconds == math.MaxInt32 {
		return 0, false
	}
	return time.Duration(*seconds) * time.Second, true
}

// complete reports whether status shows a rollout at its end: all replicas are
// new and available, and there are no others.
func complete(d *appsv1.Deployment, l limits, status *appsv1.DeploymentStatus) bool {
	return int(status.UpdatedReplicas) == l.replicas &&
		int(status.Replicas) == l.replicas &&
		int(status.AvailableReplicas) == l.replicas &&
		status.ObservedGeneration >= d.Generation
}

// progressed reports whether a rollout has come closer to its end from one
// status to the next.
func progressed(before, after *appsv1.DeploymentStatus) bool {
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas ||
		after.AvailableReplicas > before.AvailableReplicas
}

// untilDeadlineCheck returns how long after now the deadline that runs since c, the condition
// Progressing, is to be looked at; not above 0 when it has passed. ok is false
// when none is running: there is nothing to measure from, the rollout had its
// end (a new one starts with a new condition), or the verdict is known.
func untilDeadlineCheck(c *appsv1.DeploymentCondition, deadline time.Duration, now time.Time) (wait time.Duration, ok bool) {
	if c == nil || c.Reason == reasonNewReplicaSetAvailable || c.Reason == reasonProgressDeadlineExceeded {
		return 0, false
	}
	return c.LastUpdateTime.Add(deadline).Add(deadlineCheckDelay).Sub(now), true
}

// progressConditions returns the conditions of after, with Progressing as it follows from
// how replicas went from the reported status to after.
func (r *rollout) progressConditions(after *appsv1.DeploymentStatus) []appsv1.DeploymentCondition {
	deadline, limited := deadlineOf(r.deployment)
	if !limited {
		return withoutCondition(after.Conditions, appsv1.DeploymentProgressing)
	}
	before := findCondition(after.Conditions, appsv1.DeploymentProgressing)
	if before != nil && before.Reason == reasonNewReplicaSetAvailable && after.Replicas == after.UpdatedReplicas {
		return after.Conditions // it has ended; pods that fail since are no rollout
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

// progressSubject is what messages about progress are about.
func (r *rollout) progressSubject() string {
	if set := r.newSet(); set != nil {
		return fmt.Sprintf("ReplicaSet %q", set.Name)
	}
	return fmt.Sprintf("Deployment %q", r.deployment.Name)
}

// progressingCondition makes a condition Progressing.
func (r *rollout) progressingCondition(status corev1.ConditionStatus, reason, format string, args ...any) appsv1.DeploymentCondition {
	now := metav1.NewTime(r.now)
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: status, LastUpdateTime: now, LastTransitionTime: now,
		Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// setProgressing has this sync report a condition Progressing, if the Deployment has a
// deadline and so the condition at all.
func (r *rollout) setProgressing(status corev1.ConditionStatus, reason, format string, args ...any) {
	if _, limited := deadlineOf(r.deployment); limited {
		c := r.progressingCondition(status, reason, format, args...)
		r.progressing = &c
	}
}

// setPausedOrResumed reports that the Deployment has been paused, or goes on, since its
// status was written: time that passes while it is paused is not lack of
// progress. A rollout that has missed its deadline has done so.
func (r *rollout) setPausedOrResumed() {
	c := findCondition(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if c != nil && c.Reason == reasonProgressDeadlineExceeded {
		return
	}
	known := c != nil && c.Reason == reasonPaused
	switch is := r.deployment.Spec.Paused; {
	case is && !known:
		r.setProgressing(corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !is && known:
		r.setProgressing(corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	}
}

// setFoundNewReplicaSet starts the clock for a Deployment that has its new ReplicaSet, but
// no condition to measure from: it may have got its deadline later.
func (r *rollout) setFoundNewReplicaSet() {
	before := findCondition(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if set := r.newSet(); set != nil && before == nil && r.progressing == nil {
		r.setProgressing(corev1.ConditionTrue, reasonFoundNewReplicaSet, "Found new replica set %q", set.Name)
	}
}
