package embedded

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAtRest(t *testing.T) {
	for _, test := range []struct {
		name  string
		phase corev1.PodPhase
		ready corev1.ConditionStatus
		going bool
		want  bool
	}{
		{name: "serves", phase: corev1.PodRunning, ready: corev1.ConditionTrue, want: true},
		{name: "is yet to start", phase: corev1.PodPending, ready: corev1.ConditionFalse},
		{name: "is yet to be ready", phase: corev1.PodRunning, ready: corev1.ConditionFalse},
		{name: "is on its way out", phase: corev1.PodRunning, ready: corev1.ConditionTrue, going: true},
		{name: "has ended", phase: corev1.PodFailed, ready: corev1.ConditionFalse, want: true},
		{name: "has ended and is said to be ready", phase: corev1.PodSucceeded, ready: corev1.ConditionTrue},
		{name: "has ended and is on its way out", phase: corev1.PodSucceeded, ready: corev1.ConditionFalse, going: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{
				Phase: test.phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: test.ready}},
			}}
			if test.going {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			if got := atRest(pod); got != test.want {
				t.Errorf("at rest: %v, want %v", got, test.want)
			}
		})
	}
}
