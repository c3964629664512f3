package check

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// settles makes a ReplicaSet of two pods with a true status, the faults healed.
func settles(s *story) *history.Object {
	rs := told(s, 2)
	s.phase(history.PhaseSettle)
	s.deliver(s.createAll(rs, 2)...)
	return s.status("web", 2)
}

func TestConverged(t *testing.T) {
	judge(t, "converged", []tale{
		{name: "in time", want: Pass, tell: func(s *story) {
			settles(s)
			s.wait(time.Minute)
		}},
		{name: "too late", want: Fail, says: "converged 1m0", tell: func(s *story) {
			rs := told(s, 2)
			s.phase(history.PhaseSettle)
			s.wait(time.Minute)
			s.deliver(s.createAll(rs, 2)...)
			s.status("web", 2)
		}},
		{name: "one pod short", want: Fail, says: "ReplicaSet ns/web: 1 of 2 pods active", tell: func(s *story) {
			settles(s)
			s.fail(s.find("web-1"))
			s.wait(time.Minute)
		}},
		{name: "a surplus never trimmed (R26)", want: Fail, says: "3 of 2 pods active", tell: func(s *story) {
			rs := settles(s)
			s.pod(rs, "web")
			s.wait(time.Minute)
		}},
		{name: "an orphan neither adopted nor replaced (R15)", want: Fail, says: "1 of 2 pods active", tell: func(s *story) {
			settles(s)
			s.strip(s.find("web-1"))
			s.wait(time.Minute)
		}},
		{name: "a pod that does not match any more is not released", want: Fail, says: "1 of its pods to be released", tell: func(s *story) {
			settles(s)
			s.relabel(s.find("web-1"), "other")
			s.wait(time.Minute)
		}},
		{name: "a matching orphan beside", want: Fail, says: "1 matching pods to be adopted", tell: func(s *story) {
			settles(s)
			s.pod(nil, "web")
			s.wait(time.Minute)
		}},
		{name: "bystanders beside: not matching, foreign, failed, terminating (traps 10, 21)", want: Pass, tell: func(s *story) {
			rs := settles(s)
			s.pod(nil, "other")
			s.pod(foreign(), "web")
			s.fail(s.pod(nil, "web"))
			s.fail(s.pod(rs, "web"))
			s.terminate(s.pod(rs, "web"))
			s.wait(time.Minute)
		}},
		{name: "a status that lies", want: Fail, says: "status.readyReplicas is 1, in truth 2", tell: func(s *story) {
			settles(s)
			s.revise("web", "status", map[string]any{"readyReplicas": 1})
			s.wait(time.Minute)
		}},
		{name: "a failure long past", want: Fail, says: "the condition ReplicaFailure is still there", tell: func(s *story) {
			settles(s)
			s.revise("web", "status", fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True"}}})
			s.wait(time.Minute)
		}},
		{name: "a generation not observed", want: Fail, says: "observedGeneration is 1 at generation 2", tell: func(s *story) {
			settles(s)
			s.revise("web", "spec", map[string]any{"minReadySeconds": 0})
			s.wait(time.Minute)
		}},
		{name: "an owner that is going is nobody's", want: Pass, tell: func(s *story) {
			settles(s)
			s.terminate(s.replicaSet("gone", 5))
			s.wait(time.Minute)
		}},
		{name: "an owner elsewhere", want: Pass, tell: func(s *story) {
			settles(s)
			s.commit(history.Added, history.Object{
				Ref:  history.Ref{Resource: replicaSets, Namespace: "elsewhere", Name: "web", UID: "elsewhere-uid"},
				Body: []byte(`{"spec":{"replicas":3,"selector":{}}}`),
			})
			s.wait(time.Minute)
		}},
		{name: "pods not ready, and a status that says so", want: Pass, tell: func(s *story) {
			rs := settles(s)
			pending := *s.find("web-1")
			pending.Body = podBody("Pending", false)
			s.commit(history.Modified, pending)
			s.revise(rs.Name, "status", map[string]any{"readyReplicas": 1, "availableReplicas": 1})
			s.wait(time.Minute)
		}},
		{name: "undone when it should be quiet", want: Fail, says: "1 of 2 pods active", tell: func(s *story) {
			settles(s)
			s.phase(history.PhaseQuiet)
			s.terminate(s.find("web-1"))
		}},
		{name: "the run gave up before the bound", want: Unknown, tell: func(s *story) {
			told(s, 2)
			s.phase(history.PhaseSettle)
		}},
		{name: "the run never settled", want: Unknown, tell: func(s *story) { told(s, 2) }},
		{name: "nothing there", want: NotExercised, tell: func(s *story) { s.phase(history.PhaseSettle) }},
	})
}

func TestQuiet(t *testing.T) {
	quiet := func(s *story) *history.Object {
		rs := settles(s)
		s.phase(history.PhaseQuiet)
		return rs
	}
	judge(t, "no-writes-when-settled", []tale{
		{name: "leases, events, reads", want: Pass, tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.request(history.Request{Verb: "update", Resource: leaseResource, Name: "l"}).answered(200)
			s.request(history.Request{Verb: "create", Resource: "events"}).answered(201)
			s.readLive(rs)
			s.wait(time.Second)
		}},
		{name: "a write that changes nothing", want: Fail, says: "sent update replicasets.apps ns/web", tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.writeStatus(rs).answered(200)
			s.wait(time.Second)
		}},
		{name: "what it was just doing", want: Pass, tell: func(s *story) {
			rs := quiet(s)
			s.writeStatus(rs).answered(200)
			s.wait(2 * time.Second)
		}},
		{name: "a change in a window that was given up excuses nothing", want: Fail, says: "sent update replicasets.apps ns/web", tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.deliver(s.fail(s.find("web-1")))
			s.deliver(s.revise("web-1", "status", map[string]any{"phase": "Running"}))
			s.phase(history.PhaseQuiet)
			s.wait(1500 * time.Millisecond)
			s.writeStatus(rs).answered(200)
			s.wait(time.Second)
		}},
		{name: "the cluster changes of itself, and it reacts", want: Unknown, tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.deliver(s.fail(s.find("web-1")))
			s.create(rs)
			s.wait(time.Second)
		}},
		{name: "writes after the end are the teardown", want: Pass, tell: func(s *story) {
			rs := quiet(s)
			s.wait(3 * time.Second)
			s.end()
			s.writeStatus(rs)
		}},
		{name: "watched too briefly", want: Unknown, tell: func(s *story) { quiet(s) }},
		{name: "never converged", want: Unknown, tell: func(s *story) { told(s, 1) }},
	})
}

func TestSettled(t *testing.T) {
	s := newStory()
	pendingNow := func() []string {
		settled := NewSettled()
		for _, r := range s.records {
			settled.Observe(r)
		}
		return settled.Pending()
	}
	rs := s.replicaSet("web", 2)
	s.revise("web", "spec", map[string]any{"minReadySeconds": 30})
	s.owner(controllers, "db", "db", 0)
	s.status("db", 0)
	want := []string{
		"ReplicaSet ns/web: 0 of 2 pods active",
		"ReplicaSet ns/web: status.observedGeneration is 0 at generation 2",
	}
	if diff := cmp.Diff(want, pendingNow()); diff != "" {
		t.Errorf("nothing done: -want +got:\n%s", diff)
	}

	for range 2 {
		p := *s.pod(rs, "web")
		p.Body = []byte(strings.Replace(string(p.Body), `"True"`, `"True","lastTransitionTime":"2001-09-09T01:46:40Z"`, 1)) // the start
		s.commit(history.Modified, p)
	}
	s.status("web", 2)
	s.revise("web", "status", map[string]any{"availableReplicas": 0})
	if diff := cmp.Diff([]string{"ReplicaSet ns/web: 2 ready pods not yet available"}, pendingNow()); diff != "" {
		t.Errorf("pods not yet available: -want +got:\n%s", diff)
	}

	s.wait(30 * time.Second)
	s.status("web", 2)
	gone := s.terminate(s.pod(rs, "web"))
	if diff := cmp.Diff([]string{"ReplicaSet ns/web: 1 pods being deleted"}, pendingNow()); diff != "" {
		t.Errorf("one more, and deleted: -want +got:\n%s", diff)
	}

	s.commit(history.Deleted, *gone)
	if got := pendingNow(); len(got) != 0 {
		t.Errorf("all done: got %q", got)
	}
}
