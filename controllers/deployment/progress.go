package deployment

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// afterDeadline is how long after a deadline it is looked at, so that a timer
// that is early does not find it still ahead.
const afterDeadline = 100 * time.Millisecond

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

// due returns how long after now the deadline that runs since c, the condition
// Progressing, is to be looked at; not above 0 when it has passed. ok is false
// when none is running: there is nothing to measure from, the rollout had its
// end (a new one starts with a new condition), or the verdict is known.
func due(c *appsv1.DeploymentCondition, deadline time.Duration, now time.Time) (wait time.Duration, ok bool) {
	if c == nil || c.Reason == newSetAvailable || c.Reason == deadlineExceeded {
		return 0, false
	}
	return c.LastUpdateTime.Add(deadline).Add(afterDeadline).Sub(now), true
}

// judge returns the conditions of after, with Progressing as it follows from
// how replicas went from the reported status to after.
func (r *rollout) judge(after *appsv1.DeploymentStatus) []appsv1.DeploymentCondition {
	deadline, limited := deadlineOf(r.deployment)
	if !limited {
		return withoutCondition(after.Conditions, appsv1.DeploymentProgressing)
	}
	before := condition(after.Conditions, appsv1.DeploymentProgressing)
	if before != nil && before.Reason == newSetAvailable && after.Replicas == after.UpdatedReplicas {
		return after.Conditions // it has ended; pods that fail since are no rollout
	}
	wait, running := due(before, deadline, r.now)
	switch {
	case complete(r.deployment, r.limits, after):
		return withCondition(after.Conditions, r.progress(corev1.ConditionTrue, newSetAvailable, "%s has successfully progressed.", r.subject()))
	case progressed(&r.deployment.Status, after):
		return withNews(after.Conditions, r.progress(corev1.ConditionTrue, setUpdated, "%s is progressing.", r.subject()))
	case running && wait <= 0:
		return withCondition(after.Conditions, r.progress(corev1.ConditionFalse, deadlineExceeded, "%s has timed out progressing.", r.subject()))
	default:
		return after.Conditions
	}
}

// subject is what messages about progress are about.
func (r *rollout) subject() string {
	if set := r.newSet(); set != nil {
		return fmt.Sprintf("ReplicaSet %q", set.Name)
	}
	return fmt.Sprintf("Deployment %q", r.deployment.Name)
}

// progress makes a condition Progressing.
func (r *rollout) progress(status corev1.ConditionStatus, reason, format string, args ...any) appsv1.DeploymentCondition {
	now := metav1.NewTime(r.now)
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: status, LastUpdateTime: now, LastTransitionTime: now,
		Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// note has this sync report a condition Progressing, if the Deployment has a
// deadline and so the condition at all.
func (r *rollout) note(status corev1.ConditionStatus, reason, format string, args ...any) {
	if _, limited := deadlineOf(r.deployment); limited {
		c := r.progress(status, reason, format, args...)
		r.progressing = &c
	}
}

// notePause reports that the Deployment has been paused, or goes on, since its
// status was written: time that passes while it is paused is not lack of
// progress. A rollout that has missed its deadline has done so.
func (r *rollout) notePause() {
	c := condition(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if c != nil && c.Reason == deadlineExceeded {
		return
	}
	known := c != nil && c.Reason == paused
	switch is := r.deployment.Spec.Paused; {
	case is && !known:
		r.note(corev1.ConditionUnknown, paused, "Deployment is paused")
	case !is && known:
		r.note(corev1.ConditionUnknown, resumed, "Deployment is resumed")
	}
}

// noteFound starts the clock for a Deployment that has its new ReplicaSet, but
// no condition to measure from: it may have got its deadline later.
func (r *rollout) noteFound() {
	before := condition(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if set := r.newSet(); set != nil && before == nil && r.progressing == nil {
		r.note(corev1.ConditionTrue, newSetFound, "Found new replica set %q", set.Name)
	}
}
