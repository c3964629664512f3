package check

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestSettled(t *testing.T) {
	h := newHistoryBuilder()
	pendingNow := func() []string {
		settled := NewSettled()
		for _, r := range h.records {
			settled.Observe(r)
		}
		return settled.Pending()
	}
	rs := h.replicaSet("web", 2)
	h.revise("web", "spec", map[string]any{"minReadySeconds": 30})
	h.owner(controllers, "db", "db", 0)
	h.status("db", 0)
	want := []string{
		"ReplicaSet ns/web: 0 active pods, expected 2",
		"ReplicaSet ns/web: status.observedGeneration is 0, expected 2",
	}
	if diff := cmp.Diff(want, pendingNow()); diff != "" {
		t.Errorf("no pods: -want +got:\n%s", diff)
	}

	for range 2 {
		p := *h.pod(rs, "web")
		p.Body = []byte(strings.Replace(string(p.Body), `"True"`, `"True","lastTransitionTime":"2001-09-09T01:46:40Z"`, 1)) // the time when the run started
		h.commit(history.Modified, p)
	}
	h.status("web", 2)
	h.revise("web", "status", map[string]any{"availableReplicas": 0})
	if diff := cmp.Diff([]string{"ReplicaSet ns/web: 2 ready pods are not available yet (minReadySeconds), expected 0"}, pendingNow()); diff != "" {
		t.Errorf("pods not available yet: -want +got:\n%s", diff)
	}

	h.wait(30 * time.Second)
	h.status("web", 2)
	gone := h.terminate(h.pod(rs, "web"))
	if diff := cmp.Diff([]string{"ReplicaSet ns/web: 1 pods are terminating, expected 0"}, pendingNow()); diff != "" {
		t.Errorf("a terminating pod: -want +got:\n%s", diff)
	}

	h.commit(history.Deleted, *gone)
	if got := pendingNow(); len(got) != 0 {
		t.Errorf("converged: got %q", got)
	}
}

// TestSettledServices requires that Pending reports Endpoints each time they become wrong. It
// must also report Endpoints whose Service was deleted.
func TestSettledServices(t *testing.T) {
	h := newHistoryBuilder()
	settled, seen := NewSettled(), 0
	pendingNow := func() []string {
		for ; seen < len(h.records); seen++ {
			settled.Observe(h.records[seen])
		}
		return settled.Pending()
	}
	expect := func(when, want string) {
		t.Helper()
		got := pendingNow()
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	service := h.service("web", nil)
	expect("no Endpoints", "Service ns/web: found no Endpoints, expected Endpoints ns/web")
	e := h.endpoints("web")
	expect("no pods", "")
	h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
	expect("a ready pod", "Service ns/web: Endpoints lack 10.1.0.1:8080 (Pod ns/web-1)")
	h.remove(service)
	expect("Service deleted", "Endpoints ns/web: the Service was deleted, expected the controller to delete the Endpoints too")
	h.remove(e)
	expect("Endpoints deleted", "")
}
