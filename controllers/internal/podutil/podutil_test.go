package podutil

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestActiveAndTerminating(t *testing.T) {
	for _, test := range []struct {
		phase               corev1.PodPhase
		deleted             bool
		active, terminating bool
	}{
		{corev1.PodPending, false, true, false},
		{corev1.PodRunning, false, true, false},
		{corev1.PodUnknown, false, true, false},
		{corev1.PodFailed, false, false, false},
		{corev1.PodSucceeded, false, false, false},
		{corev1.PodRunning, true, false, true},
		{corev1.PodFailed, true, false, false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: test.phase}}
		if test.deleted {
			pod.DeletionTimestamp = &metav1.Time{}
		}
		if got := Active(pod); got != test.active {
			t.Errorf("%s, deleted %t: active = %t", test.phase, test.deleted, got)
		}
		if got := Terminating(pod); got != test.terminating {
			t.Errorf("%s, deleted %t: terminating = %t", test.phase, test.deleted, got)
		}
	}
}

func TestAvailableAt(t *testing.T) {
	since := time.Unix(1000, 0)
	ready := func(status corev1.ConditionStatus, since time.Time) []corev1.PodCondition {
		return []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since)},
		}
	}
	for _, test := range []struct {
		name       string
		conditions []corev1.PodCondition
		minReady   time.Duration
		want       time.Time
		wantOK     bool
	}{
		{"no condition", nil, 0, time.Time{}, false},
		{"not ready", ready(corev1.ConditionFalse, since), 0, time.Time{}, false},
		{"ready, minReady 0", ready(corev1.ConditionTrue, since), 0, time.Time{}, true},
		{"ready, minReady set", ready(corev1.ConditionTrue, since), 30 * time.Second, since.Add(30 * time.Second), true},
		{"ready, no lastTransitionTime", ready(corev1.ConditionTrue, time.Time{}), 30 * time.Second, time.Time{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			at, ok := AvailableAt(&corev1.Pod{Status: corev1.PodStatus{Conditions: test.conditions}}, test.minReady)
			if !at.Equal(test.want) || ok != test.wantOK {
				t.Errorf("AvailableAt = %s, %t; want %s, %t", at, ok, test.want, test.wantOK)
			}
		})
	}
}

func TestReadyTransitionTime(t *testing.T) {
	when := metav1.Unix(1000, 0)
	for _, test := range []struct {
		name       string
		conditions []corev1.PodCondition
		want       time.Time
	}{
		{"no condition", nil, time.Time{}},
		{"another condition", []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: when}}, time.Time{}},
		{"became ready", []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: when}}, when.Time},
		{"became not ready", []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: when}}, when.Time},
	} {
		if got := ReadyTransitionTime(&corev1.Pod{Status: corev1.PodStatus{Conditions: test.conditions}}); !got.Equal(test.want) {
			t.Errorf("%s: ReadyTransitionTime = %s, want %s", test.name, got, test.want)
		}
	}
}

func TestRestarts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}}},
		Status: corev1.PodStatus{
			ContainerStatuses:     []corev1.ContainerStatus{{RestartCount: 1}, {RestartCount: 3}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", RestartCount: 9}, {Name: "side", RestartCount: 2}},
		},
	}
	if containers, sidecars := Restarts(pod); containers != 3 || sidecars != 2 {
		t.Errorf("Restarts = %d, %d; want 3, 2", containers, sidecars)
	}
}
