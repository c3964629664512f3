package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestSlowStart(t *testing.T) {
	runTestCases(t, "slow-start", []testCase{
		{name: "batches of 1, 2, 4, 8", want: Pass, build: func(h *historyBuilder) {
			h.createAll(deliveredReplicaSet(h, 15), 15)
		}},
		{name: "2 creates at once in the first batch", want: Fail, evidence: "2 creates in flight after 0 successful creates", build: func(h *historyBuilder) {
			h.creates(deliveredReplicaSet(h, 2), 2)
		}},
		{name: "a batch read from the connection of a killed process", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.createAll(rs, 7)
			h.append(history.Record{Process: &history.Process{Name: h.subject, Event: history.ProcessStopped}})
			h.creates(rs, 8)
		}},
		{name: "a restarted process starts with 2", want: Fail, evidence: "2 creates in flight after 0 successful creates", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.createAll(rs, 7)
			h.append(history.Record{Process: &history.Process{Name: h.subject, Event: history.ProcessStopped}})
			h.restart(h.subject)
			h.creates(rs, 2)
		}},
		{name: "4 creates at once in the second batch", want: Fail, evidence: "3 creates in flight after 1 successful creates", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 10)
			succeed(h.create(rs))
			h.creates(rs, 4)
		}},
		{name: "a sync that follows another and continues after an idle period", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(succeed(h.create(rs))...)
			rs = h.scale("web", 6)
			h.deliver(rs)
			h.deliver(succeed(h.create(rs))...)
			h.wait(5 * time.Second)
			h.deliver(succeed(h.creates(rs, 2)...)...)
			h.deliver(succeed(h.creates(rs, 2)...)...)
		}},
		{name: "a spec.replicas of a moment ago does not count for the sync", want: Fail, evidence: "2 creates in flight after 0 successful creates", build: func(h *historyBuilder) {
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
		{name: "a batch continues after the machine stalled", want: Pass, build: func(h *historyBuilder) {
			h.deliver(h.createAll(deliveredReplicaSet(h, 1), 1)...)
			rs := h.scale("web", 3)
			h.deliver(rs)
			h.stall(5 * time.Second)
			h.deliver(succeed(h.creates(rs, 2)...)...)
		}},
		{name: "a batch of 2 starts although the machine did not stall", want: Fail, evidence: "2 creates in flight after 0 successful creates", build: func(h *historyBuilder) {
			h.deliver(h.createAll(deliveredReplicaSet(h, 1), 1)...)
			rs := h.scale("web", 3)
			h.deliver(rs)
			h.wait(5 * time.Second)
			h.creates(rs, 2)
		}},
		{name: "starts with 1 again after a rejection", want: Pass, build: func(h *historyBuilder) {
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
		{name: "starts with 2 after a rejection", want: Fail, evidence: "2 creates in flight after 0 successful creates", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.create(rs).answered(403)
			h.wait(5 * time.Millisecond)
			h.creates(rs, 2)
		}},
		{name: "sends the rest of a failed batch", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.createAll(rs, 7)
			batch := h.creates(rs, 2)
			batch[0].answered(422)
			succeed(h.creates(rs, 6)...)
		}},
		{name: "sends more than the rest of a failed batch", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			h.create(rs).answered(422)
			for range 8 {
				h.create(rs).answered(422)
			}
			h.creates(rs, 2)
		}},
		{name: "an idle period ends a failed batch", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			h.create(rs).answered(422)
			h.wait(2 * time.Second)
			h.creates(rs, 2)
		}},
		{name: "the machine stalls during a sync", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.deliver(h.createAll(rs, 7)...)
			h.wait(3 * time.Second)
			h.creates(rs, 8)
		}},
		{name: "the machine stalls during a sync after a rejection", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 20)
			h.create(rs).answered(403)
			h.wait(5 * time.Millisecond)
			h.deliver(h.createAll(rs, 3)...)
			h.wait(3 * time.Second)
			h.creates(rs, 4)
		}},
		{name: "the machine stalls during a sync after a rejection in a batch", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.deliver(h.createAll(rs, 7)...)
			h.create(rs).answered(422) // the process may not send the rest of this batch of eight
			h.wait(5 * time.Millisecond)
			h.deliver(h.createAll(rs, 3)...)
			h.wait(3 * time.Second)
			h.creates(rs, 4)
		}},
		{name: "a completed sync after a rejection does not count for the next", want: Fail, evidence: "2 creates in flight after 0 successful creates", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 7)
			h.create(rs).answered(403)
			h.wait(5 * time.Millisecond)
			h.deliver(h.createAll(rs, 7)...)
			h.wait(3 * time.Second)
			rs = h.scale("web", 20)
			h.deliver(rs)
			h.creates(rs, 2)
		}},
		{name: "a completed sync does not count for the next", want: Fail, evidence: "2 creates in flight after 0 successful creates", build: func(h *historyBuilder) {
			h.createAll(deliveredReplicaSet(h, 7), 7)
			h.wait(3 * time.Second)
			rs := h.scale("web", 20)
			h.deliver(rs)
			h.creates(rs, 2)
		}},
		{name: "client-go resends rejected calls and the batch continues (client-retries)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			batch := h.creates(rs, 8)
			batch[0].deferred(429)
			batch[1].deferred(503)
			succeed(batch[2:]...)
			h.wait(2 * time.Second) // client-go waits as the header Retry-After says
			succeed(h.creates(rs, 2)...)
			succeed(h.creates(rs, 16)...)
		}},
		{name: "rejected calls that client-go does not resend end the batch", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			batch := h.creates(rs, 8)
			batch[0].answered(429)
			batch[1].answered(503)
			succeed(batch[2:]...)
			succeed(h.creates(rs, 2)...)
		}},
		{name: "a create without an answer ends the batch", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			batch := h.creates(rs, 8)
			batch[0].commitPod().lost()
			succeed(batch[1:]...)
			succeed(h.create(rs))
			succeed(h.creates(rs, 2)...)
		}},
		{name: "the next batch after a create without an answer", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).commitPod().lost()
			h.creates(rs, 2)
		}},
		{name: "the client-side rate limit spreads a batch (client-rate-limit)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.createAll(rs, 7)
			for range 8 {
				succeed(h.create(rs))
				h.wait(50 * time.Millisecond)
			}
		}},
		{name: "the next batch after all creates were rejected", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).answered(500)
			h.creates(rs, 2)
		}},
		{name: "the next batch in a terminating namespace (terminating-namespace-creates)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).refusedAsTerminating()
			for _, create := range h.creates(rs, 2) {
				create.refusedAsTerminating()
			}
			h.creates(rs, 4)
		}},
		{name: "skips a batch in a terminating namespace", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 40)
			h.create(rs).refusedAsTerminating()
			h.creates(rs, 3)
		}},
		{name: "each owner starts with 1", want: Pass, build: func(h *historyBuilder) {
			web, db := deliveredReplicaSet(h, 2), h.owner(controllers, "db", "db", 2)
			h.deliver(db)
			step, b := h.create(web), h.create(db)
			succeed(step, b)
			h.create(web)
			h.create(db)
		}},
	})
}
