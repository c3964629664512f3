package catalog

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestUserEdit checks that the fault performs its steps in order, with a "fired" record in the
// history for each step. A failed step must cause a "failed" record and end the fault.
func TestUserEdit(t *testing.T) {
	l := startLive(t)
	owner := l.commit("owner")
	if _, err := l.admin.AppsV1().ReplicaSets(l.namespace).Create(t.Context(), replicaSet("web", owner), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	heal := l.inject("user-edit", `{steps: [
		{scale: {kind: ReplicaSet, name: web, replicas: 3}},
		{label: {kind: ReplicaSet, name: web, labels: {touched: "yes"}}},
		{delete: {kind: ReplicaSet, name: gone}},
		{scale: {kind: ReplicaSet, name: web, replicas: 5}}]}`)
	set := func() *appsv1.ReplicaSet {
		t.Helper()
		set, err := l.admin.AppsV1().ReplicaSets(l.namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	if replicas := *set().Spec.Replicas; replicas != 3 {
		t.Errorf("%d replicas when the fault is in force, want 3", replicas)
	}
	failure := l.Await(t, "failure", func(r history.Record) bool { return r.Fault != nil && r.Fault.Event == history.FaultFailed })
	if !strings.Contains(failure.Fault.Detail, "delete ReplicaSet gone") {
		t.Errorf("recorded failure %q, want one of the step that deletes ReplicaSet gone", failure.Fault.Detail)
	}
	heal()
	if web := set(); *web.Spec.Replicas != 3 || web.Labels["touched"] != "yes" || l.fired() != 2 {
		t.Errorf("replicas %d, labels %v, fired %d times; want 3, touched and twice", *web.Spec.Replicas, web.Labels, l.fired())
	}
}

// TestUserEditCanceled checks that healing the fault cancels a step that is still waiting.
func TestUserEditCanceled(t *testing.T) {
	l := startLive(t)
	l.runPod("a", ready)
	heal := l.inject("user-edit", "{steps: [{label: {kind: Pod, name: a, labels: {step: one}}}, {label: {kind: Pod, name: a, labels: {step: two}}, after: 5m}]}")
	l.awaitFired()
	heal()
	err := l.poll("the label", func(context.Context) error {
		if step := l.pod("a").Labels["step"]; step != "one" {
			return fmt.Errorf("the label step is %q, want one", step)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, record := range l.All() {
		if record.Fault != nil && record.Fault.Event == history.FaultFailed {
			t.Errorf("healing recorded a failure: %s", record.Fault.Detail)
		}
	}
}
