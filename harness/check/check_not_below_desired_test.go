package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestNotBelowDesired(t *testing.T) {
	runTestCases(t, "not-below-desired", []testCase{
		{name: "deletes the excess", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.scale("web", 3))
			h.delete(pods[0]).answered(200)
			h.delete(pods[1]).answered(200)
		}},
		{name: "deletes one more than the excess", want: Fail, evidence: "leaves at most 2 active pods in its cache, 3 wanted", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.scale("web", 3))
			h.delete(pods[0]).answered(200)
			h.delete(pods[1]).answered(200)
			h.delete(pods[2])
		}},
		{name: "counts terminating pods again (mutant R2)", want: Fail, evidence: "leaves at most 2 active pods in its cache, 3 wanted", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 6)
			pods := h.running(rs, 6)
			h.deliver(h.scale("web", 5))
			h.delete(pods[0]).answered(200)
			h.deliver(h.terminate(pods[0]))
			h.wait(2 * time.Second)
			h.deliver(h.scale("web", 3)) // with 5 active pods and a terminating one, 2 are in excess, not 3
			h.delete(pods[1]).answered(200)
			h.delete(pods[2]).answered(200)
			h.delete(pods[3]).answered(200)
		}},
		{name: "the next scale-down deletes the excess", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 6)
			pods := h.running(rs, 6)
			h.deliver(h.scale("web", 5))
			h.delete(pods[0]).answered(200)
			h.deliver(h.terminate(pods[0]))
			h.wait(2 * time.Second)
			h.deliver(h.scale("web", 3))
			h.delete(pods[1]).answered(200)
			h.delete(pods[2]).answered(200)
		}},
		{name: "a pod fails during the scale-down", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.scale("web", 3))
			h.deliver(h.failPod(pods[4]))
			h.delete(pods[0]).answered(200)
			h.delete(pods[1]).answered(200)
		}},
		{name: "a delete without an answer, and another delete", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.scale("web", 4))
			h.delete(pods[0]).lost()
			h.delete(pods[1]).answered(200)
			h.deliver(h.terminate(pods[0]))
		}},
		{name: "a cached pod is already deleted in etcd", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 4)
			pods := h.running(rs, 5)
			h.commit(history.Deleted, *pods[0])
			h.delete(pods[0]).answered(404)
			h.delete(pods[1]).answered(200)
		}},
		{name: "the event arrives before the answer", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.scale("web", 3))
			step, b := h.delete(pods[0]), h.delete(pods[1])
			h.deliver(h.terminate(pods[0]))
			step.answered(200)
			h.deliver(h.terminate(pods[1]))
			b.answered(200)
		}},
		{name: "the event arrives before the answer, and one delete too many", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.scale("web", 4))
			step := h.delete(pods[0])
			h.deliver(h.terminate(pods[0]))
			step.answered(200)
			h.delete(pods[1])
		}},
		{name: "deletes its own pod because of another owner's pod with a matching label (mutant R11)", want: Fail, evidence: "leaves at most 2 active pods in its cache, 3 wanted", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			other := h.owner(replicaSets, "other", "web", 1)
			h.deliver(other)
			pods := h.running(rs, 3)
			h.running(other, 1)
			h.delete(pods[0])
		}},
		{name: "deletes pods of a terminating owner", want: Fail, evidence: "is terminating or deleted", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.terminate(rs))
			h.wait(3 * time.Second)
			h.delete(pods[0])
		}},
		{name: "deletes within the lag of the owner's deletionTimestamp", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 0))
			h.deliver(h.terminate(rs))
			h.delete(pods[0])
		}},
		{name: "deletes a pod after it adopted a matching orphan", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.running(rs, 2)
			orphan := h.pod(nil, "web")
			h.deliver(orphan)
			h.readLive(rs)
			h.adopt(orphan, rs).answered(200)
			h.delete(pods[0]).answered(200)
		}},
	})
}
