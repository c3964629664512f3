package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestRevisionHistoryLimit(t *testing.T) {
	// threeOld delivers a Deployment with revisionHistoryLimit 1, three old ReplicaSets and a
	// new one. It then changes the fields of the Deployment's spec that the parameter spec
	// contains.
	threeOld := func(h *historyBuilder, spec fields) {
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
		{name: "deletes the lowest revisions above the limit", want: Pass, build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.deleteReplicaSet("web-v1").answered(200)
			h.deleteReplicaSet("web-v2").answered(200)
		}},
		{name: "deletes one more than the limit allows", want: Fail, evidence: "deleted ReplicaSet ns/web-v3: 2 of 3 old ReplicaSets have a lower revision, and revisionHistoryLimit is 1", build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.deleteReplicaSet("web-v3").answered(200)
		}},
		{name: "deletes the new ReplicaSet", want: Fail, evidence: "deleted ReplicaSet ns/web-v4: it is the new ReplicaSet", build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.deleteReplicaSet("web-v4").answered(200)
		}},
		{name: "deletes a ReplicaSet with replicas", want: Fail, evidence: "it has spec.replicas 0 and status.replicas 1", build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.deliver(h.revise("web-v1", "status", fields{"replicas": 1}))
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "deletes a ReplicaSet whose observedGeneration is behind", want: Fail, evidence: "its status.observedGeneration is behind its generation", build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.deliver(h.revise("web-v1", "spec", fields{"replicas": 0}))
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "deletes a ReplicaSet that had no replicas a moment ago", want: Pass, build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.deliver(h.revise("web-v1", "status", fields{"replicas": 1}))
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "deletes during a rollout", want: Fail, evidence: "the rollout is not complete", build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.rollTo("web", "v5")
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "deletes while paused", want: Pass, build: func(h *historyBuilder) {
			threeOld(h, fields{"paused": true})
			h.rollTo("web", "v5")
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "deletes while paused with a requested rollback", want: Fail, evidence: "the Deployment is paused, and a rollback is requested", build: func(h *historyBuilder) {
			threeOld(h, fields{"paused": true})
			h.annotate(h.find("web"), objects.RollbackAnnotation, "1")
			h.deliver(h.find("web"))
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
		{name: "deletes for a terminating Deployment", want: Fail, evidence: "the Deployment is terminating", build: func(h *historyBuilder) {
			threeOld(h, fields{})
			h.deliver(h.terminate(h.find("web")))
			h.wait(3 * time.Second)
			h.deleteReplicaSet("web-v1").answered(200)
		}},
	})
}
