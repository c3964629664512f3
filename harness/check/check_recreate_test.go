package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestRecreate(t *testing.T) {
	// startRollout delivers a Deployment whose old ReplicaSet is scaled to 0 but still has a pod
	// in the given phase. It then changes the template to v2. It returns the old ReplicaSet and
	// the pod.
	startRollout := func(h *historyBuilder, phase string) (old, pod *history.Object) {
		h.deployment("web", 1, fields{"type": "Recreate"})
		old = h.replicaSetOfSize("web", "v1", 0, 0, 1)
		pod = h.podOf(old, phase)
		h.wait(3 * time.Second)
		h.rollTo("web", "v2")
		return old, pod
	}
	runTestCases(t, "recreate", []testCase{
		{name: "an old pod is running", want: Fail, evidence: "scaled the new ReplicaSet web-v2 up to 1 while the old pod ns/web-v1-1 had not terminated", build: func(h *historyBuilder) {
			startRollout(h, "Running")
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "an old pod is terminating", want: Fail, evidence: "while the old pod", build: func(h *historyBuilder) {
			_, pod := startRollout(h, "Running")
			h.deliver(h.terminate(pod))
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "scales the new ReplicaSet up too early", want: Fail, evidence: "scaled the new ReplicaSet web-v2 up to 1", build: func(h *historyBuilder) {
			startRollout(h, "Running")
			h.resize(h.replicaSetOfSize("web", "v2", 0, 0, 1), 1).applyAndAnswer()
		}},
		{name: "all old pods are deleted", want: Pass, build: func(h *historyBuilder) {
			_, pod := startRollout(h, "Running")
			h.remove(pod)
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "the old pods have failed (mutant D7)", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, "Failed")
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "an old pod has just arrived", want: Pass, build: func(h *historyBuilder) {
			old, pod := startRollout(h, "Failed")
			h.remove(pod)
			h.podOf(old, "Running")
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "no old ReplicaSet (mutant D22)", want: notFailed, build: func(h *historyBuilder) {
			h.deployment("web", 1, fields{"type": "Recreate"})
			h.wait(3 * time.Second)
			h.createReplicaSet("web", "v1", 1).applyAndAnswer()
		}},
		{name: "scaled while paused", want: notFailed, build: func(h *historyBuilder) {
			old, _ := startRollout(h, "Running")
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			h.resize(old, 1).applyAndAnswer()
		}},
		{name: "the strategy is RollingUpdate by now", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, "Running")
			h.deliver(h.revise("web", "spec", fields{"strategy": rollingUpdate(1, 0)}))
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
	})
}
