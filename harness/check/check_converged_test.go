package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestConverged(t *testing.T) {
	runTestCases(t, "converged", []testCase{
		{name: "converges in time", want: Pass, build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.wait(time.Minute)
		}},
		{name: "converges too late", want: Fail, evidence: "converged 1m0", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			h.phase(history.PhaseSettle)
			h.wait(time.Minute)
			h.deliver(h.createAll(rs, 2)...)
			h.status("web", 2)
		}},
		{name: "one pod missing", want: Fail, evidence: "ReplicaSet ns/web: 1 active pods, expected 2", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.failPod(h.find("web-1"))
			h.wait(time.Minute)
		}},
		{name: "one pod missing, after a stall of the machine", want: Unknown, evidence: "the machine stalled for 40s of the 41 after the faults were healed", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.failPod(h.find("web-1"))
			h.wait(time.Second)
			h.stall(40 * time.Second)
		}},
		{name: "one pod too many (mutant R26)", want: Fail, evidence: "3 active pods, expected 2", build: func(h *historyBuilder) {
			rs := convergedReplicaSet(h)
			h.pod(rs, "web")
			h.wait(time.Minute)
		}},
		{name: "an orphan neither adopted nor replaced (mutant R15)", want: Fail, evidence: "1 active pods, expected 2", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.removeOwner(h.find("web-1"))
			h.wait(time.Minute)
		}},
		{name: "a pod that no longer matches is not released", want: Fail, evidence: "1 controlled pods do not match spec.selector, expected 0", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.relabel(h.find("web-1"), "other")
			h.wait(time.Minute)
		}},
		{name: "a matching orphan is not adopted", want: Fail, evidence: "1 orphaned pods match spec.selector, expected 0", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.pod(nil, "web")
			h.wait(time.Minute)
		}},
		{name: "other pods: not matching, of another controller, failed, terminating (terminating-pods-not-counted and inactive-pods)", want: Pass, build: func(h *historyBuilder) {
			rs := convergedReplicaSet(h)
			h.pod(nil, "other")
			h.pod(foreign(), "web")
			h.failPod(h.pod(nil, "web"))
			h.failPod(h.pod(rs, "web"))
			h.terminate(h.pod(rs, "web"))
			h.wait(time.Minute)
		}},
		{name: "status.readyReplicas is wrong", want: Fail, evidence: "status.readyReplicas is 1, expected 2", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.revise("web", "status", map[string]any{"readyReplicas": 1})
			h.wait(time.Minute)
		}},
		{name: "condition ReplicaFailure remains after the failure", want: Fail, evidence: "condition ReplicaFailure is True, expected no such condition", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.revise("web", "status", fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True"}}})
			h.wait(time.Minute)
		}},
		{name: "generation not observed", want: Fail, evidence: "observedGeneration is 1, expected 2", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.revise("web", "spec", map[string]any{"minReadySeconds": 0})
			h.wait(time.Minute)
		}},
		{name: "a terminating owner does not count", want: Pass, build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.terminate(h.replicaSet("gone", 5))
			h.wait(time.Minute)
		}},
		{name: "an owner in another namespace does not count", want: Pass, build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.commit(history.Added, history.Object{
				Ref:  history.Ref{Resource: replicaSets, Namespace: "elsewhere", Name: "web", UID: "elsewhere-uid"},
				Body: []byte(`{"spec":{"replicas":3,"selector":{}}}`),
			})
			h.wait(time.Minute)
		}},
		{name: "pods not ready, with a matching status", want: Pass, build: func(h *historyBuilder) {
			rs := convergedReplicaSet(h)
			pending := *h.find("web-1")
			pending.Body = podBody("Pending", false)
			h.commit(history.Modified, pending)
			h.revise(rs.Name, "status", map[string]any{"readyReplicas": 1, "availableReplicas": 1})
			h.wait(time.Minute)
		}},
		{name: "a pod terminates after convergence", want: Fail, evidence: "1 active pods, expected 2", build: func(h *historyBuilder) {
			convergedReplicaSet(h)
			h.phase(history.PhaseQuiet)
			h.terminate(h.find("web-1"))
		}},
		{name: "the run ends before the bound", want: Unknown, build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 2)
			h.phase(history.PhaseSettle)
		}},
		{name: "the run never settles", want: Unknown, build: func(h *historyBuilder) { deliveredReplicaSet(h, 2) }},
		{name: "no owners", want: NotExercised, build: func(h *historyBuilder) { h.phase(history.PhaseSettle) }},
	})
}
