package catalog

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// startPod creates a pod with a controllerRef to a ConfigMap, and waits until the pod is
// ready.
func (l *live) startPod(name string) {
	l.t.Helper()
	owner := l.commit("owner")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
	}
	l.eventually("a pod is admitted", func(ctx context.Context) (bool, string) { // pods are admitted only after the namespace has a service account
		_, err := l.admin.CoreV1().Pods(l.namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	l.awaitPodState(name, "ready", func(p *corev1.Pod) bool { return p != nil && isReady(p) })
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// awaitPodState waits until the function want returns true for a pod. After the pod is deleted,
// awaitPodState passes nil to want. The argument what describes the awaited state.
func (l *live) awaitPodState(name, what string, want func(*corev1.Pod) bool) {
	l.t.Helper()
	l.eventually("the pod becomes "+what, func(ctx context.Context) (bool, string) {
		pod, err := l.admin.CoreV1().Pods(l.namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case isNotFound(err):
			return want(nil), "it was deleted"
		case err != nil:
			return false, err.Error()
		}
		return want(pod), fmt.Sprintf("labels %v, owners %v, finalizers %v, status %+v", pod.Labels, pod.OwnerReferences, pod.Finalizers, pod.Status)
	})
}

// eventually calls the function done until done returns true. After a time limit, the test fails
// with the last text that done returned.
func (l *live) eventually(what string, done func(context.Context) (bool, string)) {
	l.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(l.t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (ok bool, _ error) {
		ok, last = done(ctx)
		return ok, nil
	})
	if err != nil {
		l.t.Fatalf("waiting until %s: %v: %s", what, err, last)
	}
}

// TestLivePods checks the state of a pod after each action of a pod fault, such as an eviction. It
// also checks the state after the fault is healed.
func TestLivePods(t *testing.T) {
	gone := func(p *corev1.Pod) bool { return p == nil }
	tests := []struct {
		faultType, params string
		injected, healed  func(*corev1.Pod) bool
	}{
		{"pod-churn", "action: delete, gracePeriodSeconds: 0", gone, gone},
		{"pod-churn", "action: evict", gone, gone},
		{"pod-churn", "action: fail", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed && !isReady(p) }, nil},
		{"pod-churn", "action: collapse", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed && isReady(p) }, nil},
		{"pod-churn", "action: succeed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded && !isReady(p) }, nil},
		{"pod-churn", "action: unready, downtime: 1h", func(p *corev1.Pod) bool { return !isReady(p) }, isReady},
		{"pod-churn", "action: restart, downtime: 1h",
			func(p *corev1.Pod) bool { return !isReady(p) && p.Status.ContainerStatuses[0].RestartCount == 1 }, isReady},
		{"pod-churn", "action: linger, downtime: 1h",
			func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && len(p.Finalizers) == 1 }, gone},
		{"pod-relabel", "downtime: 1h", func(p *corev1.Pod) bool { return p.Labels["app"] == "changed-web" },
			func(p *corev1.Pod) bool { return p.Labels["app"] == "web" }},
		{"pod-disown", "how: strip", func(p *corev1.Pod) bool { return len(p.OwnerReferences) == 0 }, nil},
		{"pod-disown", "how: give", func(p *corev1.Pod) bool { return p.OwnerReferences[0].Name == "other-controller" }, nil},
	}
	for _, test := range tests {
		t.Run(test.faultType+" "+strings.TrimPrefix(test.params, "action: "), func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			l.startPod("a")
			heal := l.inject(test.faultType, "{"+test.params+", every: 100ms, times: 1}")
			l.awaitPodState("a", "as injected", test.injected)
			heal()
			if test.healed == nil {
				test.healed = test.injected
			}
			l.awaitPodState("a", "as healed", test.healed)
			if l.fired() != 1 {
				t.Errorf("the history has %d firings, want 1", l.fired())
			}
		})
	}
}
