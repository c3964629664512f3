package embedded

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsFinished(t *testing.T) {
	for _, test := range []struct {
		name     string
		phase    corev1.PodPhase
		ready    corev1.ConditionStatus
		deleting bool
		want     bool
	}{
		{name: "Ready", phase: corev1.PodRunning, ready: corev1.ConditionTrue, want: true},
		{name: "Pending", phase: corev1.PodPending, ready: corev1.ConditionFalse},
		{name: "Running but not Ready", phase: corev1.PodRunning, ready: corev1.ConditionFalse},
		{name: "Running and Terminating", phase: corev1.PodRunning, ready: corev1.ConditionTrue, deleting: true},
		{name: "Failed", phase: corev1.PodFailed, ready: corev1.ConditionFalse, want: true},
		{name: "Succeeded but still Ready", phase: corev1.PodSucceeded, ready: corev1.ConditionTrue},
		{name: "Succeeded and Terminating", phase: corev1.PodSucceeded, ready: corev1.ConditionFalse, deleting: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{
				Phase: test.phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: test.ready}},
			}}
			if test.deleting {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			if got := isFinished(pod); got != test.want {
				t.Errorf("isFinished() = %v, want %v", got, test.want)
			}
		})
	}
}
