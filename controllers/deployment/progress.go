package deployment

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deadlineCheckDelay is the time from the progress deadline to the sync that checks the
// deadline. Without this delay, a timer that fires slightly early would find that the deadline
// has not passed.
const deadlineCheckDelay = 100 * time.Millisecond

// deadlineOf returns spec.progressDeadlineSeconds of a Deployment as a duration. The result ok
// is false if the Deployment has no progress deadline.
func deadlineOf(d *appsv1.Deployment) (deadline time.Duration, ok bool) {
	seconds := d.Spec.ProgressDeadlineSeconds
	if seconds == nil || *seconds == math.MaxInt32 {
		return 0, false
	}
	return time.Duration(*seconds) * time.Second, true
}

// complete reports whether the rollout is complete according to the given status. All replicas must
// be updated and available, and no other replicas may exist. The status must have the latest
// generation.
func complete(d *appsv1.Deployment, l limits, status *appsv1.DeploymentStatus) bool {
	return int(status.UpdatedReplicas) == l.replicas &&
		int(status.Replicas) == l.replicas &&
		int(status.AvailableReplicas) == l.replicas &&
		status.ObservedGeneration >= d.Generation
}

// progressed reports whether the rollout has made progress between two versions of the status.
// More updated, ready or available replicas are progress, and fewer old replicas are too.
func progressed(before, after *appsv1.DeploymentStatus) bool {
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas ||
		after.AvailableReplicas > before.AvailableReplicas
}

// untilDeadlineCheck returns the time until a sync must check the progress deadline. The time is
// 0 or negative if the check is due now.
//
// The argument c is the condition Progressing, whose lastUpdateTime starts the deadline. The result
// ok is false if no deadline is running: c is nil, or its reason already says that the rollout is
// complete or has exceeded the deadline.
func untilDeadlineCheck(c *appsv1.DeploymentCondition, deadline time.Duration, now time.Time) (wait time.Duration, ok bool) {
	if c == nil || c.Reason == reasonNewReplicaSetAvailable || c.Reason == reasonProgressDeadlineExceeded {
		return 0, false
	}
	return c.LastUpdateTime.Add(deadline).Add(deadlineCheckDelay).Sub(now), true
}

// progressConditions returns the Deployment's conditions with an updated condition Progressing.
// The argument after is the new status, which contains the conditions before this update. If the
// Deployment has no progress deadline, the result has no condition Progressing.
//
// To find out whether the rollout has made progress, progressConditions compares the replica
// counts in the new status with those in the existing status; see progressed.
func (r *rollout) progressConditions(after *appsv1.DeploymentStatus) []appsv1.DeploymentCondition {
	deadline, limited := deadlineOf(r.deployment)
	if !limited {
		return withoutCondition(after.Conditions, appsv1.DeploymentProgressing)
	}
	before := findCondition(after.Conditions, appsv1.DeploymentProgressing)
	if before != nil && before.Reason == reasonNewReplicaSetAvailable && after.Replicas == after.UpdatedReplicas {
		return after.Conditions // the rollout is complete; pods that fail later do not begin a new rollout
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

// progressSubject returns a text about the object that messages of the condition Progressing name.
// This is the new ReplicaSet, such as `ReplicaSet "web-5d4f"`, or the Deployment if there is no
// new ReplicaSet.
func (r *rollout) progressSubject() string {
	if set := r.newSet(); set != nil {
		return fmt.Sprintf("ReplicaSet %q", set.Name)
	}
	return fmt.Sprintf("Deployment %q", r.deployment.Name)
}

// progressingCondition returns a condition Progressing with the given status, reason and
// message. Both of its times are the time of this sync.
func (r *rollout) progressingCondition(status corev1.ConditionStatus, reason, format string, args ...any) appsv1.DeploymentCondition {
	now := metav1.NewTime(r.now)
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: status, LastUpdateTime: now, LastTransitionTime: now,
		Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// setProgressing sets r.progressing, the condition Progressing that this sync will write. A
// Deployment without a progress deadline has no such condition, so setProgressing then does
// nothing.
func (r *rollout) setProgressing(status corev1.ConditionStatus, reason, format string, args ...any) {
	if _, limited := deadlineOf(r.deployment); limited {
		c := r.progressingCondition(status, reason, format, args...)
		r.progressing = &c
	}
}

// setPausedOrResumed sets the condition Progressing if the Deployment was paused or resumed
// since the last status update. While the Deployment is paused, the progress deadline does not
// run.
//
// If the deadline was already exceeded, the condition stays unchanged.
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

// setFoundNewReplicaSet sets the condition Progressing if the new ReplicaSet exists but the
// condition does not.
//
// This happens if progressDeadlineSeconds was set after the create of the ReplicaSet. The
// condition's lastUpdateTime starts the progress deadline.
func (r *rollout) setFoundNewReplicaSet() {
	before := findCondition(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if set := r.newSet(); set != nil && before == nil && r.progressing == nil {
		r.setProgressing(corev1.ConditionTrue, reasonFoundNewReplicaSet, "Found new replica set %q", set.Name)
	}
}
