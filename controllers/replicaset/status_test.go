package replicaset

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestReplicaFailure(t *testing.T) {
	r := newFixture(t, newSet(5), newPod("a"))
	condition := func() string {
		t.Helper()
		last := r.written[len(r.written)-1]
		r.cache(t, newSet(5, func(s *appsv1.ReplicaSet) { s.Status, s.ResourceVersion = last, "3000" }))
		var text string
		for _, c := range last.Conditions {
			text += fmt.Sprintf("%s=%s %s;", c.Type, c.Status, c.Reason)
		}
		return text
	}
	r.callErrors[create] = []error{errTooManyRequests}
	_ = r.sync(t.Context(), key) // ignore the error, which TestSync checks
	if got, want := condition(), "ReplicaFailure=True FailedCreate;"; got != want {
		t.Errorf("after a failed create: %q, want %q", got, want)
	}
	writes := len(r.written)
	_ = r.sync(t.Context(), key)
	if len(r.written) != writes {
		t.Error("the same condition was written again")
	}
	r.callErrors[create] = nil
	if err := r.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := condition(); got != "" {
		t.Errorf("after success: %q, want no condition", got)
	}

	surplus := newFixture(t, newSet(0), newPod("a"))
	surplus.callErrors["delete pods a"] = []error{errTooManyRequests}
	_ = surplus.sync(t.Context(), key)
	if c := surplus.written[0].Conditions; len(c) != 1 || c[0].Reason != "FailedDelete" {
		t.Errorf("after a failed delete: %v, want reason FailedDelete", c)
	}
}

func TestStatus(t *testing.T) {
	set := newSet(4, func(s *appsv1.ReplicaSet) {
		s.Generation = 7
		s.Spec.MinReadySeconds = 10
		s.Spec.Template.Labels["tier"] = "front"
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Other", Status: corev1.ConditionTrue}}
	})
	tiered := func(p *corev1.Pod) { p.Labels["tier"] = "front" }
	r := newFixture(t, set, newPod("pending"), newPod("full", tiered), newPod("ready", ready(9*time.Second)), newPod("available", ready(10*time.Second)),
		newPod("leaving", terminating), newPod("left", terminating, phase(corev1.PodFailed)), newPod("relabelled", terminating, relabeled), newPod("failed", phase(corev1.PodFailed)))
	if err := r.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	want := []appsv1.ReplicaSetStatus{{
		Replicas: 4, FullyLabeledReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 1, TerminatingReplicas: new(int32(1)), ObservedGeneration: 7,
		Conditions: []appsv1.ReplicaSetCondition{{Type: "Other", Status: corev1.ConditionTrue}},
	}}
	if diff := cmp.Diff(want, r.written); diff != "" {
		t.Errorf("status written (-want +got):\n%s", diff)
	}
}
