package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// deliveredReplicaSet commits a ReplicaSet named web with the given number of replicas, and
// delivers it to the process.
func deliveredReplicaSet(h *historyBuilder, replicas int) *history.Object {
	rs := h.replicaSet("web", replicas)
	h.deliver(rs)
	return rs
}

func TestBurstLimit(t *testing.T) {
	runTestCases(t, "burst-limit", []testCase{
		{name: "500 creates not observed", want: Pass, build: func(h *historyBuilder) {
			h.createAll(deliveredReplicaSet(h, 1200), 500)
		}},
		{name: "501 creates not observed", want: Fail, evidence: "501 outstanding creates of pods", build: func(h *historyBuilder) {
			h.createAll(deliveredReplicaSet(h, 1200), 501)
		}},
		{name: "500 creates observed, and 500 more", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1200)
			h.deliver(h.createAll(rs, 500)...)
			h.deliver(h.createAll(rs, 500)...)
		}},
		{name: "one create more after a rejected one", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1200)
			h.create(rs).answered(500)
			h.createAll(rs, 500)
		}},
		{name: "a bookmark shows that the pods were created and deleted", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1200)
			h.createAll(rs, 500)
			h.bookmark(objects.PodResource, false)
			h.createAll(rs, 500)
		}},
		{name: "a restarted process has no outstanding creates", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1200)
			h.createAll(rs, 400)
			h.restart("subject-0")
			h.createAll(rs, 500)
		}},
		{name: "500 more creates after five minutes (expired-expectations)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1200)
			h.createAll(rs, 500)
			h.wait(5 * time.Minute)
			h.createAll(rs, 500)
		}},
		{name: "501 deletes not observed", want: Fail, evidence: "501 outstanding deletes of pods", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 600)
			pods := h.running(rs, 600)
			h.deliver(h.scale("web", 0))
			for _, p := range pods[:501] {
				h.delete(p).answered(200)
			}
		}},
		{name: "500 deletes not observed", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 600)
			pods := h.running(rs, 600)
			h.deliver(h.scale("web", 0))
			for _, p := range pods[:500] {
				h.delete(p).answered(200)
			}
		}},
		{name: "fewer than 500 pods missing", want: NotExercised, build: func(h *historyBuilder) {
			h.createAll(deliveredReplicaSet(h, 10), 10)
		}},
	})
}
