package check

import (
	"testing"
	"time"
)

func TestMaxUnavailable(t *testing.T) {
	// startRollout delivers a Deployment with ten replicas, maxUnavailable 2 and maxSurge 0
	// during a rollout from v1 to v2. The parameters v1 and v2 are the spec.replicas of the two
	// ReplicaSets. The parameters available and ready are the numbers of their available pods.
	startRollout := func(h *historyBuilder, v1, available, v2, ready int) {
		h.deployment("web", 10, rollingUpdate(0, "25%"))
		h.replicaSetOf("web", "v1", v1, available)
		h.replicaSetOf("web", "v2", v2, ready)
		h.rollTo("web", "v2")
	}
	runTestCases(t, "max-unavailable", []testCase{
		{name: "scales down to the limit", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, 10, 10, 0, 0)
			h.resize(h.find("web-v1"), 8).applyAndAnswer()
		}},
		{name: "a percentage of maxUnavailable rounds down", want: Fail, evidence: "scaled ReplicaSet web-v1 down to 7, which leaves 7 pods available", build: func(h *historyBuilder) {
			startRollout(h, 10, 10, 0, 0)
			h.resize(h.find("web-v1"), 7).applyAndAnswer()
		}},
		{name: "scales down while the new pods are not available (mutant D16)", want: Fail, evidence: "which leaves 6 pods available", build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 2, 0)
			h.resize(h.find("web-v1"), 6).applyAndAnswer()
		}},
		{name: "scales down pods that are not available, within the budget", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, 8, 3, 2, 2)
			h.resize(h.find("web-v1"), 6).applyAndAnswer()
		}},
		{name: "scales down pods that are not available (mutant D15)", want: Fail, evidence: "scaled old ReplicaSet web-v1 down by 5 to 3", build: func(h *historyBuilder) {
			startRollout(h, 8, 3, 2, 0)
			h.resize(h.find("web-v1"), 3).applyAndAnswer()
		}},
		{name: "pods failed, and the status is not in the cache (external-disruptions)", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 2, 2)
			cached := h.find("web-v1")
			h.revise("web-v1", "status", fields{"availableReplicas": 0})
			h.resize(cached, 6).applyAndAnswer()
		}},
		{name: "pods failed, and the status has just arrived", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 2, 2)
			cached := h.find("web-v1")
			h.deliver(h.revise("web-v2", "status", fields{"availableReplicas": 0}))
			h.resize(cached, 6).applyAndAnswer()
		}},
		{name: "scales down twice in a sync, and observes the first before its answer (writes-from-one-snapshot)", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 2, 2)
			first := h.resize(h.find("web-v1"), 7)
			h.deliver(h.revise("web-v2", "status", fields{"availableReplicas": 1})) // the process receives this status after its sync began
			h.deliver(first.apply())
			first.answered(200)
			h.resize(first.made, 6).applyAndAnswer()
		}},
		{name: "scales proportionally after the Deployment was scaled", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 2, 2)
			h.deliver(h.revise("web", "spec", fields{"replicas": 5}))
			h.wait(3 * time.Second)
			h.resize(h.find("web-v1"), 1).applyAndAnswer()
		}},
		{name: "scales down too far when it is not scaling proportionally", want: Fail, evidence: "scaled ReplicaSet web-v1 down to 1", build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 2, 2)
			h.resize(h.find("web-v1"), 1).applyAndAnswer()
		}},
		{name: "scales proportionally while paused", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 2, 2)
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			h.resize(h.find("web-v1"), 1).applyAndAnswer()
		}},
		{name: "counts pods beyond spec.replicas of the new ReplicaSet", want: Fail, evidence: "which leaves 6 pods available", build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 1, 4)
			h.resize(h.find("web-v1"), 5).applyAndAnswer()
		}},
		{name: "counts pods that cannot be deleted (undeletable-pods)", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, 8, 8, 0, 3)
			h.resize(h.find("web-v1"), 5).applyAndAnswer()
		}},
		{name: "scales two ReplicaSets down together", want: Fail, evidence: "scaled ReplicaSet web-v2 down to 0, which leaves 4 pods available", build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(0, 2))
			for _, version := range []string{"v1", "v2"} {
				h.replicaSetOf("web", version, 4, 4)
			}
			h.replicaSetOf("web", "v3", 2, 2)
			h.rollTo("web", "v3")
			cached := h.find("web-v2")
			lowered := h.resize(h.find("web-v1"), 2).applyAndAnswer()
			h.deliver(lowered, h.revise("web-v1", "status", fields{"availableReplicas": 2}))
			h.wait(3 * time.Second)
			h.resize(cached, 0).applyAndAnswer()
		}},
		{name: "a user scales down", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, 10, 10, 0, 0)
			h.deliver(h.scale("web-v1", 1))
		}},
	})
}
