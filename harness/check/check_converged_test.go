package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

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
