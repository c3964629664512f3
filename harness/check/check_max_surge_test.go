package check

import (
	"testing"
	"time"
)

func TestMaxSurge(t *testing.T) {
	// Ten replicas, all of version v1; v2 is to be rolled out.
	rolls := func(h *historyBuilder, strategy fields) {
		h.deployment("web", 10, strategy)
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
	}
	runTestCases(t, "max-surge", []testCase{
		{name: "as much as it may", want: Pass, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate("25%", 0))
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "one too many", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 4, for a total of 14 replicas", build: func(h *historyBuilder) {
			rolls(h, rollingUpdate("25%", 0))
			h.createReplicaSet("web", "v2", 4).applyAndAnswer()
		}},
		{name: "a percentage of surge rounds up (D14)", want: Pass, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate("1%", 0))
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "none allowed (D14)", want: Fail, evidence: "for a total of 11 replicas", build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(0, 0))
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "more once the old one has gone down", want: Pass, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(0, 5))
			h.deliver(h.scale("web-v1", 5))
			h.createReplicaSet("web", "v2", 5).applyAndAnswer()
		}},
		{name: "it has scaled the old one down itself, and goes by the answer", want: Pass, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(0, 5))
			h.resize(h.find("web-v1"), 5).applyAndAnswer()
			h.createReplicaSet("web", "v2", 5).applyAndAnswer()
		}},
		{name: "it made one for the template before, and has not been shown it (trap 12)", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(3, 0))
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			h.createReplicaSet("web", "v3", 3).applyAndAnswer()
		}},
		{name: "it has been shown that one long ago", want: Fail, evidence: "for a total of 16 replicas", build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(3, 0))
			h.deliver(h.createReplicaSet("web", "v2", 3).applyAndAnswer())
			h.wait(3 * time.Second)
			h.rollTo("web", "v3")
			h.createReplicaSet("web", "v3", 3).applyAndAnswer()
		}},
		{name: "it has been shown that one a moment ago, and then the template", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(3, 0))
			h.deliver(h.createReplicaSet("web", "v2", 3).applyAndAnswer())
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			h.createReplicaSet("web", "v3", 3).applyAndAnswer()
		}},
		{name: "for a version of the Deployment that asks for more", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(0, 1))
			h.deliver(h.revise("web", "spec", fields{"replicas": 12}))
			h.deliver(h.revise("web", "spec", fields{"replicas": 10}))
			h.createReplicaSet("web", "v2", 2).applyAndAnswer()
		}},
		{name: "for one that it has not been told of", want: Fail, evidence: "for a total of 12 replicas", build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(0, 1))
			h.revise("web", "spec", fields{"replicas": 12})
			h.createReplicaSet("web", "v2", 2).applyAndAnswer()
		}},
		{name: "too high after a resume, from stale annotations (D17)", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 8", build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(2, 0))
			half := h.replicaSetOf("web", "v2", 2, 2)
			h.deliver(h.revise("web", "spec", fields{"paused": true, "replicas": 8}))
			h.deliver(h.scale("web-v1", 8))
			h.deliver(h.revise("web", "spec", fields{"paused": false}))
			h.wait(3 * time.Second)
			h.resize(half, 8).applyAndAnswer()
		}},
		{name: "from a version of the ReplicaSet that is long replaced", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 3", build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(2, 0))
			half := h.replicaSetOf("web", "v2", 2, 2)
			h.wait(3 * time.Second)
			h.resize(half, 3).answered(409)
		}},
		{name: "a Recreate Deployment has no such bound", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, fields{"type": "Recreate"})
			h.createReplicaSet("web", "v2", 10).applyAndAnswer()
		}},
		{name: "a ReplicaSet that is released or being deleted does not count", want: Pass, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(0, 1))
			h.deliver(h.removeOwner(h.find("web-v1")))
			h.createReplicaSet("web", "v2", 10).applyAndAnswer()
		}},
		{name: "a new leader that has not been told", want: notFailed, build: func(h *historyBuilder) {
			rolls(h, rollingUpdate(0, 1))
			h.begin("subject-1")
			h.createReplicaSet("web", "v2", 10).applyAndAnswer()
		}},
	})
}
