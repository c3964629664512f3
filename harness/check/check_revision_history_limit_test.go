package check

import (
	"testing"
	"time"
)

func TestRevisionHistoryLimit(t *testing.T) {
	// A Deployment whose limit is one old ReplicaSet, and that has three.
	three := func(h *historyBuilder, spec fields) {
		h.deployment("web", 10, rollingUpdate(2, 2))
		for _, version := range []string{"v1", "v2", "v3"} {
			h.replicaSetOf("web", version, 0, 0)
		}
		h.replicaSetOf("web", "v4", 10, 10)
		h.deliver(h.revise("web", "spec", fields{"revisionHistoryLimit": 1}))
		h.rollTo("web", "v4")
		h.settledStatus(10)
		h.deliver(h.revise("web", "spec", spec))
		h.deliver(h.revise("web", "status", fields{"observedGeneration": h.find("web").Generation}))
		h.wait(3 * time.Second)
	}
	runTestCases(t, "revision-history-limit", []testCase{
		{name: "the lowest revisions above the limit", want: Pass, build: func(h *historyBuilder) {
			three(h, fields{})
			h.deleteReplicaSet("web-v1").answered(200)
			h.deleteReplicaSet("web-v2").answered(200)
		}},
		{name: "more than that", want: Fail, evidence: "deleted ReplicaSet ns/web-v3: 2 of 3 old ReplicaSets have a lower revision, revisionHistoryLimit is 1", build: func(h *historyBuilder) {
			three(h, fields{})
			h.deleteReplicaSet("web-v3").answered(200)
		}},
		{name: "the new one", want: Fail, evidence: "deleted ReplicaSet ns/web-v4: it is the new ReplicaSet", build: func(h *historyBuilder) {
			three(h, fields{})
			h.deleteReplicaSet("web-v4").answered(200)
		}},
		{name: "one that has pods", want: Fail, evidence: "it has spec.replicas 0 and status.replicas 1", build: func(h *historyBuilder) {
			three(h, fields{})
			h.deliver(h.revise("web-v1", "status", fields{"replicas": 1}))
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "one whose controller has not seen it scaled", want: Fail, evidence: "its status.observedGeneration is behind its generation", build: func(h *historyBuilder) {
			three(h, fields{})
			h.deliver(h.revise("web-v1", "spec", fields{"replicas": 0}))
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "it had no pods a moment ago", want: Pass, build: func(h *historyBuilder) {
			three(h, fields{})
			h.deliver(h.revise("web-v1", "status", fields{"replicas": 1}))
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "while it rolls", want: Fail, evidence: "the rollout is not complete", build: func(h *historyBuilder) {
			three(h, fields{})
			h.rollTo("web", "v5")
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "while it is paused", want: Pass, build: func(h *historyBuilder) {
			three(h, fields{"paused": true})
			h.rollTo("web", "v5")
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "of a Deployment that is being deleted", want: Fail, evidence: "the Deployment is terminating", build: func(h *historyBuilder) {
			three(h, fields{})
			h.deliver(h.terminate(h.find("web")))
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
	})
}
