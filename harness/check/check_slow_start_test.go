package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestSlowStart(t *testing.T) {
	runTestCases(t, "slow-start", []testCase{
		{name: "1, 2, 4, 8", want: Pass, build: func(h *historyBuilder) {
			h.createAll(deliveredReplicaSet(h, 15), 15)
		}},
		{name: "two at once to begin with", want: Fail, evidence: "2 creates in flight after 0 successful ones", build: func(h *historyBuilder) {
			h.creates(deliveredReplicaSet(h, 2), 2)
		}},
		{name: "read from the connection of one that has been killed", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.createAll(rs, 7)
			h.append(history.Record{Process: &history.Process{Name: h.subject, Event: history.ProcessStopped}})
			h.creates(rs, 8)
		}},
		{name: "by one that has started again", want: Fail, evidence: "2 creates in flight after 0 successful ones", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.createAll(rs, 7)
			h.append(history.Record{Process: &history.Process{Name: h.subject, Event: history.ProcessStopped}})
			h.restart(h.subject)
			h.creates(rs, 2)
		}},
		{name: "four after one", want: Fail, evidence: "3 creates in flight after 1 successful ones", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 10)
			succeed(h.create(rs))
			h.creates(rs, 4)
		}},
		{name: "a sync that follows on another, and goes on after the subject was idle", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(succeed(h.create(rs))...)
			rs = h.scale("web", 6)
			h.deliver(rs)
			h.deliver(succeed(h.create(rs))...)
			h.wait(5 * time.Second)
			h.deliver(succeed(h.creates(rs, 2)...)...)
			h.deliver(succeed(h.creates(rs, 2)...)...)
		}},
		{name: "a size that was in view for a moment is not what a sync was for", want: Fail, evidence: "2 creates in flight after 0 successful ones", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(succeed(h.create(rs))...)
			h.deliver(h.scale("web", 40))
			rs = h.scale("web", 4)
			h.deliver(rs)
			h.deliver(h.createAll(rs, 3)...)
			h.wait(5 * time.Second)
			rs = h.scale("web", 9)
			h.deliver(rs)
			h.creates(rs, 5)
		}},
		{name: "a batch that goes on after the machine stood still", want: Pass, build: func(h *historyBuilder) {
			h.deliver(h.createAll(deliveredReplicaSet(h, 1), 1)...)
			rs := h.scale("web", 3)
			h.deliver(rs)
			h.stall(5 * time.Second)
			h.deliver(succeed(h.creates(rs, 2)...)...)
		}},
		{name: "one that begins with two when the machine did not", want: Fail, evidence: "2 creates in flight after 0 successful ones", build: func(h *historyBuilder) {
			h.deliver(h.createAll(deliveredReplicaSet(h, 1), 1)...)
			rs := h.scale("web", 3)
			h.deliver(rs)
			h.wait(5 * time.Second)
			h.creates(rs, 2)
		}},
		{name: "after a refusal, from one again", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.createAll(rs, 3)
			batch := h.creates(rs, 4)
			batch[0].answered(403)
			succeed(batch[1:]...)
			h.wait(5 * time.Millisecond)
			h.create(rs).answered(403)
			h.wait(10 * time.Millisecond)
			h.createAll(rs, 7)
		}},
		{name: "after a refusal, not from one", want: Fail, evidence: "2 creates in flight after 0 successful ones", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.create(rs).answered(403)
			h.wait(5 * time.Millisecond)
			h.creates(rs, 2)
		}},
		{name: "the siblings of a failed batch still come", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.createAll(rs, 7)
			batch := h.creates(rs, 2)
			batch[0].answered(422)
			succeed(h.creates(rs, 6)...)
		}},
		{name: "more than the siblings of a failed batch", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			h.create(rs).answered(422)
			for range 8 {
				h.create(rs).answered(422)
			}
			h.creates(rs, 2)
		}},
		{name: "siblings are forgotten once the subject was idle", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			h.create(rs).answered(422)
			h.wait(2 * time.Second)
			h.creates(rs, 2)
		}},
		{name: "the machine stands still in mid-sync", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.deliver(h.createAll(rs, 7)...)
			h.wait(3 * time.Second)
			h.creates(rs, 8)
		}},
		{name: "the machine stands still in mid-sync, after a refusal", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.create(rs).answered(403)
			h.wait(5 * time.Millisecond)
			h.deliver(h.createAll(rs, 3)...)
			h.wait(3 * time.Second)
			h.creates(rs, 4)
		}},
		{name: "the machine stands still in mid-sync, after a refusal of a batch", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.deliver(h.createAll(rs, 7)...)
			h.create(rs).answered(422) // of a batch of eight, of which this might be all
			h.wait(5 * time.Millisecond)
			h.deliver(h.createAll(rs, 3)...)
			h.wait(3 * time.Second)
			h.creates(rs, 4)
		}},
		{name: "a sync after a refusal that is over says nothing for the next", want: Fail, evidence: "2 creates in flight after 0 successful ones", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 7)
			h.create(rs).answered(403)
			h.wait(5 * time.Millisecond)
			h.deliver(h.createAll(rs, 7)...)
			h.wait(3 * time.Second)
			rs = h.scale("web", 20)
			h.deliver(rs)
			h.creates(rs, 2)
		}},
		{name: "a sync that is over says nothing for the next", want: Fail, evidence: "2 creates in flight after 0 successful ones", build: func(h *historyBuilder) {
			h.createAll(deliveredReplicaSet(h, 7), 7)
			h.wait(3 * time.Second)
			rs := h.scale("web", 20)
			h.deliver(rs)
			h.creates(rs, 2)
		}},
		{name: "the client repeats refused calls and the batch goes on (trap 13)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			batch := h.creates(rs, 8)
			batch[0].deferred(429)
			batch[1].deferred(503)
			succeed(batch[2:]...)
			h.wait(2 * time.Second) // Retry-After
			succeed(h.creates(rs, 2)...)
			succeed(h.creates(rs, 16)...)
		}},
		{name: "refused calls that the client does not repeat end the batch", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			batch := h.creates(rs, 8)
			batch[0].answered(429)
			batch[1].answered(503)
			succeed(batch[2:]...)
			succeed(h.creates(rs, 2)...)
		}},
		{name: "a lost answer ends the batch, and the next begins with one", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			batch := h.creates(rs, 8)
			batch[0].commitPod().lost()
			succeed(batch[1:]...)
			succeed(h.create(rs))
			succeed(h.creates(rs, 2)...)
		}},
		{name: "a lost answer, and the next batch all the same", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).commitPod().lost()
			h.creates(rs, 2)
		}},
		{name: "the client rate limit spreads a batch (trap 16)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			for range 8 {
				succeed(h.create(rs))
				h.wait(50 * time.Millisecond)
			}
		}},
		{name: "all refused, next batch all the same", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).answered(500)
			h.creates(rs, 2)
		}},
		{name: "all refused in a terminating namespace, and the next batch (trap 18)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).refusedAsTerminating()
			for _, create := range h.creates(rs, 2) {
				create.refusedAsTerminating()
			}
			h.creates(rs, 4)
		}},
		{name: "a terminating namespace is no leave to skip a batch", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).refusedAsTerminating()
			h.creates(rs, 3)
		}},
		{name: "each owner has its own start", want: Pass, build: func(h *historyBuilder) {
			web, db := deliveredReplicaSet(h, 2), h.owner(controllers, "db", "db", 2)
			h.deliver(db)
			step, b := h.create(web), h.create(db)
			succeed(step, b)
			h.create(web)
			h.create(db)
		}},
	})
}
