package check

import (
	"testing"
	"time"
)

func TestMaxUnavailable(t *testing.T) {
	// Ten replicas of which two may be unavailable, none more than ten.
	rolls := func(h *historyBuilder, v1, available, v2, ready int) {
		h.deployment("web", 10, rollingUpdate(0, "25%"))
		h.replicaSetOf("web", "v1", v1, available)
		h.replicaSetOf("web", "v2", v2, ready)
		h.rollTo("web", "v2")
	}
	runTestCases(t, "max-unavailable", []testCase{
		{name: "as much as it may", want: Pass, build: func(h *historyBuilder) {
			rolls(h, 10, 10, 0, 0)
			h.resize(h.find("web-v1"), 8).applyAndAnswer()
		}},
		{name: "a percentage of unavailability rounds down", want: Fail, evidence: "scaled ReplicaSet web-v1 down to 7, which leaves 7 pods available", build: func(h *historyBuilder) {
			rolls(h, 10, 10, 0, 0)
			h.resize(h.find("web-v1"), 7).applyAndAnswer()
		}},
		{name: "though the new pods are not available (D16)", want: Fail, evidence: "which leaves 6 pods available", build: func(h *historyBuilder) {
			rolls(h, 8, 8, 2, 0)
			h.resize(h.find("web-v1"), 6).applyAndAnswer()
		}},
		{name: "only what is not available (D15)", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, 8, 3, 2, 0)
			h.resize(h.find("web-v1"), 3).applyAndAnswer()
		}},
		{name: "pods have died, and it has not been told (trap 11)", want: Pass, build: func(h *historyBuilder) {
			rolls(h, 8, 8, 2, 2)
			known := h.find("web-v1")
			h.revise("web-v1", "status", fields{"availableReplicas": 0})
			h.resize(known, 6).applyAndAnswer()
		}},
		{name: "it has just been told that pods died", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, 8, 8, 2, 2)
			known := h.find("web-v1")
			h.deliver(h.revise("web-v2", "status", fields{"availableReplicas": 0}))
			h.resize(known, 6).applyAndAnswer()
		}},
		{name: "twice in a round, told of the first before its answer (trap 39)", want: Pass, build: func(h *historyBuilder) {
			rolls(h, 8, 8, 2, 2)
			first := h.resize(h.find("web-v1"), 7)
			h.deliver(h.revise("web-v2", "status", fields{"availableReplicas": 1})) // too late for this round
			h.deliver(first.apply())
			first.answered(200)
			h.resize(first.made, 6).applyAndAnswer()
		}},
		{name: "in proportion, as the Deployment was scaled", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, 8, 8, 2, 2)
			h.deliver(h.revise("web", "spec", fields{"replicas": 5}))
			h.wait(3 * time.Second)
			h.resize(h.find("web-v1"), 1).applyAndAnswer()
		}},
		{name: "once that is done", want: Fail, evidence: "scaled ReplicaSet web-v1 down to 1", build: func(h *historyBuilder) {
			rolls(h, 8, 8, 2, 2)
			h.resize(h.find("web-v1"), 1).applyAndAnswer()
		}},
		{name: "while it is paused, ReplicaSets are scaled at once", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, 8, 8, 2, 2)
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			h.resize(h.find("web-v1"), 1).applyAndAnswer()
		}},
		{name: "of two ReplicaSets in one go", want: Fail, evidence: "scaled ReplicaSet web-v2 down to 0, which leaves 4 pods available", build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(0, 2))
			for _, version := range []string{"v1", "v2"} {
				h.replicaSetOf("web", version, 4, 4)
			}
			h.replicaSetOf("web", "v3", 2, 2)
			h.rollTo("web", "v3")
			known := h.find("web-v2")
			lowered := h.resize(h.find("web-v1"), 2).applyAndAnswer()
			h.deliver(lowered, h.revise("web-v1", "status", fields{"availableReplicas": 2}))
			h.wait(3 * time.Second)
			h.resize(known, 0).applyAndAnswer()
		}},
		{name: "that of a user", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, 10, 10, 0, 0)
			h.deliver(h.scale("web-v1", 1))
		}},
	})
}
