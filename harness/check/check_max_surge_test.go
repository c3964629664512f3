package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestMaxSurge(t *testing.T) {
	// startRollout delivers a Deployment with ten replicas of version v1, and then changes its
	// template to v2.
	startRollout := func(h *historyBuilder, strategy fields) {
		h.deployment("web", 10, strategy)
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
	}
	runTestCases(t, "max-surge", []testCase{
		{name: "scales up to the limit", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate("25%", 0))
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "scales up one above the limit", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 4, for a total of 14 replicas", build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate("25%", 0))
			h.createReplicaSet("web", "v2", 4).applyAndAnswer()
		}},
		{name: "adopts a ReplicaSet that is too large, and changes only its annotations", want: NotExercised, build: func(h *historyBuilder) {
			h.readLive(h.deployment("web", 8, rollingUpdate(2, 0)))
			orphan := newReplicaSetOf("web", "v1", 17, 17)
			owners := orphan.Owners
			orphan.Owners = nil
			h.deliver(h.commit(history.Added, orphan))
			h.wait(3 * time.Second)
			adopted := *h.find("web-v1")
			adopted.Owners = owners
			h.resize(h.commit(history.Modified, adopted), 17).applyAndAnswer()
		}},
		{name: "a percentage of maxSurge rounds up (mutant D14)", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate("1%", 0))
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "scales up with maxSurge 0 (mutant D14)", want: Fail, evidence: "for a total of 11 replicas", build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(0, 0))
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}},
		{name: "scales up after the old ReplicaSet was scaled down", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(0, 5))
			h.deliver(h.scale("web-v1", 5))
			h.createReplicaSet("web", "v2", 5).applyAndAnswer()
		}},
		{name: "scales up after its own scale-down was answered", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(0, 5))
			h.resize(h.find("web-v1"), 5).applyAndAnswer()
			h.createReplicaSet("web", "v2", 5).applyAndAnswer()
		}},
		{name: "its ReplicaSet for the last template is not in the cache (lost-response)", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(3, 0))
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			h.createReplicaSet("web", "v3", 3).applyAndAnswer()
		}},
		{name: "its ReplicaSet for the last template has been in the cache for long", want: Fail, evidence: "for a total of 16 replicas", build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(3, 0))
			h.deliver(h.createReplicaSet("web", "v2", 3).applyAndAnswer())
			h.wait(3 * time.Second)
			h.rollTo("web", "v3")
			h.createReplicaSet("web", "v3", 3).applyAndAnswer()
		}},
		{name: "its ReplicaSet for the last template arrived just before the new template", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(3, 0))
			h.deliver(h.createReplicaSet("web", "v2", 3).applyAndAnswer())
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			h.createReplicaSet("web", "v3", 3).applyAndAnswer()
		}},
		{name: "a recent version of the Deployment had more replicas", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(0, 1))
			h.deliver(h.revise("web", "spec", fields{"replicas": 12}))
			h.deliver(h.revise("web", "spec", fields{"replicas": 10}))
			h.createReplicaSet("web", "v2", 2).applyAndAnswer()
		}},
		{name: "a version with more replicas is not in the cache", want: Fail, evidence: "for a total of 12 replicas", build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(0, 1))
			h.revise("web", "spec", fields{"replicas": 12})
			h.createReplicaSet("web", "v2", 2).applyAndAnswer()
		}},
		{name: "scales up too far after a resume, by stale annotations (mutant D17)", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 8", build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(2, 0))
			newSet := h.replicaSetOf("web", "v2", 2, 2)
			h.deliver(h.revise("web", "spec", fields{"paused": true, "replicas": 8}))
			h.deliver(h.scale("web-v1", 8))
			h.deliver(h.revise("web", "spec", fields{"paused": false}))
			h.wait(3 * time.Second)
			h.resize(newSet, 8).applyAndAnswer()
		}},
		{name: "writes from a ReplicaSet version that was replaced long ago", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 3", build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(2, 0))
			newSet := h.replicaSetOf("web", "v2", 2, 2)
			h.wait(3 * time.Second)
			h.resize(newSet, 3).answered(409)
		}},
		{name: "a Recreate Deployment has no maxSurge", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, fields{"type": "Recreate"})
			h.createReplicaSet("web", "v2", 10).applyAndAnswer()
		}},
		{name: "released and terminating ReplicaSets do not count", want: Pass, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(0, 1))
			h.deliver(h.removeOwner(h.find("web-v1")))
			h.createReplicaSet("web", "v2", 10).applyAndAnswer()
		}},
		{name: "a new leader without ReplicaSets in its cache", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h, rollingUpdate(0, 1))
			h.begin("subject-1")
			h.createReplicaSet("web", "v2", 10).applyAndAnswer()
		}},
	})
}
