package deployment

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestComplete(t *testing.T) {
	d := newDeployment(3, func(d *appsv1.Deployment) { d.Generation = 2 })
	done := appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ObservedGeneration: 2}
	tests := []struct {
		name   string
		change func(*appsv1.DeploymentStatus)
		want   bool
	}{
		{"all replicas updated and available", func(*appsv1.DeploymentStatus) {}, true},
		{"old replica left", func(s *appsv1.DeploymentStatus) { s.Replicas = 4 }, false},
		{"replica not updated", func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 2 }, false},
		{"replica not available", func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 2 }, false},
		{"generation not observed", func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status := done
			test.change(&status)
			if got := complete(d, limits{3, 1, 0}, &status); got != test.want {
				t.Errorf("complete = %t, want %t", got, test.want)
			}
		})
	}
}

func TestProgressed(t *testing.T) {
	before := appsv1.DeploymentStatus{Replicas: 5, UpdatedReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 3}
	tests := []struct {
		name   string
		change func(*appsv1.DeploymentStatus)
		want   bool
	}{
		{"nothing", func(*appsv1.DeploymentStatus) {}, false},
		{"updated replica added", func(s *appsv1.DeploymentStatus) { s.Replicas, s.UpdatedReplicas = 6, 3 }, true},
		{"old replica removed", func(s *appsv1.DeploymentStatus) { s.Replicas = 4 }, true},
		{"updated replica removed", func(s *appsv1.DeploymentStatus) { s.Replicas, s.UpdatedReplicas = 4, 1 }, false},
		{"old replica added", func(s *appsv1.DeploymentStatus) { s.Replicas = 6 }, false},
		{"ready replica added", func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 4 }, true},
		{"available replica added", func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 4 }, true},
		{"available replica lost", func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 2 }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			after := before
			test.change(&after)
			if got := progressed(&before, &after); got != test.want {
				t.Errorf("progressed = %t, want %t", got, test.want)
			}
		})
	}
}

func TestDeadlineOf(t *testing.T) {
	for name, test := range map[string]struct {
		seconds *int32
		want    time.Duration
	}{"none": {nil, 0}, "the largest number": {new(int32(math.MaxInt32)), 0}, "10 minutes": {new(int32(600)), 10 * time.Minute}} {
		d := newDeployment(1, func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = test.seconds })
		if got, ok := deadlineOf(d); got != test.want || ok != (test.want != 0) {
			t.Errorf("%s: deadline %s, %t; want %s", name, got, ok, test.want)
		}
	}
}

func TestUntilDeadlineCheck(t *testing.T) {
	of := func(reason string, ago time.Duration) *appsv1.DeploymentCondition {
		return &appsv1.DeploymentCondition{Reason: reason, LastUpdateTime: metav1.NewTime(now.Add(-ago))}
	}
	tests := []struct {
		name    string
		c       *appsv1.DeploymentCondition
		want    time.Duration
		running bool
	}{
		{"no condition Progressing", nil, 0, false},
		{"deadline just started", of(reasonNewReplicaSetCreated, 0), time.Minute + deadlineCheckDelay, true},
		{"half-way", of(reasonReplicaSetUpdated, 30*time.Second), 30*time.Second + deadlineCheckDelay, true},
		{"at the deadline", of(reasonReplicaSetUpdated, time.Minute), deadlineCheckDelay, true},
		{"past it", of(reasonResumed, time.Minute+deadlineCheckDelay), 0, true},
		{"long past the deadline", of(reasonReplicaSetCreateError, time.Hour), time.Minute + deadlineCheckDelay - time.Hour, true},
		{"last rollout is complete", of(reasonNewReplicaSetAvailable, time.Hour), 0, false},
		{"deadline already exceeded", of(reasonProgressDeadlineExceeded, time.Hour), 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, running := untilDeadlineCheck(test.c, time.Minute, now)
			if got != test.want || running != test.running {
				t.Errorf("check in %s, %t; want %s, %t", got, running, test.want, test.running)
			}
		})
	}
}

// TestProgressConditions checks the new condition Progressing after a change of the status.
func TestProgressConditions(t *testing.T) {
	rolling := appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 1, ReadyReplicas: 3, AvailableReplicas: 3, ObservedGeneration: 1}
	further := appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 3, ObservedGeneration: 1}
	done := appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, ObservedGeneration: 1}
	type want struct {
		reason     string
		status     corev1.ConditionStatus
		updated    time.Duration // age of the condition's lastUpdateTime
		transition time.Duration // age of the condition's lastTransitionTime
		message    string
	}
	const minute = time.Minute
	tests := []struct {
		name          string
		reason        string // "" means no condition
		ago           time.Duration
		before, after appsv1.DeploymentStatus
		want          *want
	}{
		{"no progress", reasonReplicaSetUpdated, minute, rolling, rolling, &want{reasonReplicaSetUpdated, "True", minute, minute, ""}},
		{"no progress, no condition", "", 0, rolling, rolling, nil},
		{"progress", reasonNewReplicaSetCreated, minute, rolling, further, &want{reasonReplicaSetUpdated, "True", 0, minute, `ReplicaSet "web-v1" is progressing.`}},
		{"further progress restarts the deadline", reasonReplicaSetUpdated, minute, rolling, further, &want{reasonReplicaSetUpdated, "True", 0, minute, `ReplicaSet "web-v1" is progressing.`}},
		{"progress after the deadline", reasonProgressDeadlineExceeded, minute, rolling, further, &want{reasonReplicaSetUpdated, "True", 0, 0, `ReplicaSet "web-v1" is progressing.`}},
		{"complete", reasonReplicaSetUpdated, minute, rolling, done, &want{reasonNewReplicaSetAvailable, "True", 0, minute, `ReplicaSet "web-v1" has successfully progressed.`}},
		{"complete after the deadline", reasonProgressDeadlineExceeded, minute, done, done, &want{reasonNewReplicaSetAvailable, "True", 0, 0, `ReplicaSet "web-v1" has successfully progressed.`}},
		{"complete when resumed", reasonResumed, minute, done, done, &want{reasonNewReplicaSetAvailable, "True", 0, 0, `ReplicaSet "web-v1" has successfully progressed.`}},
		{"complete before", reasonNewReplicaSetAvailable, minute, done, done, &want{reasonNewReplicaSetAvailable, "True", minute, minute, ""}},
		{"pods recovering after completion are not a rollout", reasonNewReplicaSetAvailable, time.Hour,
			appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 1}, done, &want{reasonNewReplicaSetAvailable, "True", time.Hour, time.Hour, ""}},
		{"some pods recovering after completion are not a rollout", reasonNewReplicaSetAvailable, time.Hour,
			appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 1},
			appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2, ObservedGeneration: 1}, &want{reasonNewReplicaSetAvailable, "True", time.Hour, time.Hour, ""}},
		{"next rollout", reasonNewReplicaSetAvailable, time.Hour, rolling, further, &want{reasonReplicaSetUpdated, "True", 0, time.Hour, `ReplicaSet "web-v1" is progressing.`}},
		{"next rollout does not use the last rollout's deadline", reasonNewReplicaSetAvailable, time.Hour, rolling, rolling, &want{reasonNewReplicaSetAvailable, "True", time.Hour, time.Hour, ""}},
		{"before the deadline", reasonReplicaSetUpdated, 10 * minute, rolling, rolling, &want{reasonReplicaSetUpdated, "True", 10 * minute, 10 * minute, ""}},
		{"after the deadline", reasonReplicaSetUpdated, 10*minute + time.Second, rolling, rolling, &want{reasonProgressDeadlineExceeded, "False", 0, 0, `ReplicaSet "web-v1" has timed out progressing.`}},
		{"after the deadline, with progress", reasonReplicaSetUpdated, time.Hour, rolling, further, &want{reasonReplicaSetUpdated, "True", 0, time.Hour, `ReplicaSet "web-v1" is progressing.`}},
		{"deadline stays exceeded", reasonProgressDeadlineExceeded, time.Hour, rolling, rolling, &want{reasonProgressDeadlineExceeded, "False", time.Hour, time.Hour, ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDeployment(3, image("v1"), deadline(600))
			d.Status = test.before
			if test.reason != "" {
				progressing(test.reason, test.ago)(d)
			}
			r := &rollout{deployment: d, limits: limits{3, 1, 0}, now: now}
			r.setSets([]*appsv1.ReplicaSet{newSetOf(d, "v1", 1, 3)})
			after := test.after
			after.Conditions = d.Status.Conditions
			got := findCondition(r.progressConditions(&after), appsv1.DeploymentProgressing)
			if test.want == nil {
				if got != nil {
					t.Errorf("condition %v, want none", got)
				}
				return
			}
			ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
			expected := &appsv1.DeploymentCondition{
				Type: appsv1.DeploymentProgressing, Status: test.want.status, Reason: test.want.reason, Message: test.want.message,
				LastUpdateTime: ago(test.want.updated), LastTransitionTime: ago(test.want.transition),
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgressConditionsWithoutDeadline(t *testing.T) {
	d := newDeployment(3, progressing(reasonReplicaSetUpdated, time.Hour), func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = nil })
	r := &rollout{deployment: d, limits: limits{3, 1, 0}, newIndex: none, now: now}
	if got := findCondition(r.progressConditions(d.Status.DeepCopy()), appsv1.DeploymentProgressing); got != nil {
		t.Errorf("condition %v, want none", got)
	}
}

func TestSetPausedOrResumed(t *testing.T) {
	tests := []struct {
		name   string
		paused bool
		reason string // "" means no condition
		want   string // "" means that no condition is set
	}{
		{"goes on", false, reasonReplicaSetUpdated, ""},
		{"paused", true, reasonReplicaSetUpdated, reasonPaused},
		{"paused after completion", true, reasonNewReplicaSetAvailable, reasonPaused},
		{"paused without a condition", true, "", reasonPaused},
		{"still paused", true, reasonPaused, ""},
		{"resumed", false, reasonPaused, reasonResumed},
		{"resumed before", false, reasonResumed, ""},
		{"paused after the deadline", true, reasonProgressDeadlineExceeded, ""},
		{"resumed after the deadline", false, reasonProgressDeadlineExceeded, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDeployment(3, deadline(600), func(d *appsv1.Deployment) { d.Spec.Paused = test.paused })
			if test.reason != "" {
				progressing(test.reason, time.Hour)(d)
			}
			r := &rollout{deployment: d, now: now}
			r.setPausedOrResumed()
			got := ""
			if r.progressing != nil {
				got = r.progressing.Reason
				if r.progressing.Status != corev1.ConditionUnknown || !r.progressing.LastUpdateTime.Time.Equal(now) {
					t.Errorf("condition %v, want status Unknown as of now", r.progressing)
				}
			}
			if got != test.want {
				t.Errorf("reason %q, want %q", got, test.want)
			}
		})
	}
	r := &rollout{deployment: newDeployment(3, asPaused), now: now}
	if r.setPausedOrResumed(); r.progressing != nil {
		t.Errorf("without a deadline: %v", r.progressing)
	}
}

func TestSetFoundNewReplicaSet(t *testing.T) {
	tests := []struct {
		name   string
		change func(*appsv1.Deployment)
		want   bool
	}{
		{"no condition Progressing", deadline(600), true},
		{"no deadline", func(*appsv1.Deployment) {}, false},
		{"condition exists", progressing(reasonReplicaSetUpdated, time.Hour), false},
		{"no new ReplicaSet", func(d *appsv1.Deployment) { deadline(600)(d); image("v2")(d) }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDeployment(3, test.change)
			r := &rollout{deployment: d, now: now}
			r.setSets([]*appsv1.ReplicaSet{newSetOf(d, "v1", 1, 3)})
			if r.setFoundNewReplicaSet(); (r.progressing != nil) != test.want {
				t.Errorf("condition %v, want one: %t", r.progressing, test.want)
			}
			if test.want && r.progressing.Message != `Found new replica set "web-v1"` {
				t.Errorf("message %q", r.progressing.Message)
			}
		})
	}
}
