package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestProcessAlive(t *testing.T) {
	died := func(h *historyBuilder) {
		h.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessDied, Detail: "exit status 2"}})
	}
	answerLeaseRequest := func(h *historyBuilder, code int) {
		h.request(history.Request{Verb: "update", Resource: leaseResource, Namespace: "kube-system", Name: "l"}).answered(code)
	}
	runTestCases(t, "process-alive", []testCase{
		{name: "runs until the end", want: Pass, build: func(*historyBuilder) {}},
		{name: "exits by itself", want: Fail, evidence: "subject-0 died: exit status 2", build: died},
		{name: "the run stops it", want: Pass, build: func(h *historyBuilder) {
			h.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStopped}})
			h.restart("subject-0")
		}},
		{name: "exits after a failed lease renewal", want: Pass, build: func(h *historyBuilder) {
			answerLeaseRequest(h, 500)
			h.wait(10 * time.Second)
			died(h)
		}},
		{name: "exits after a lease renewal without an answer", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(8 * time.Second)
			h.renew("me")
			h.wait(2 * time.Second)
			died(h)
		}},
		{name: "exits while a lease renewal is in flight, with time for another", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(2 * time.Second)
			h.renew("me")
			h.wait(1100 * time.Millisecond)
			died(h)
		}},
		{name: "exits after a late lease renewal", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(8 * time.Second)
			h.holdLease()
			h.wait(1500 * time.Millisecond)
			died(h)
		}},
		{name: "exits after the response to a lease renewal came late", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(2 * time.Second)
			step := h.renew("me")
			h.wait(5 * time.Second)
			h.answerRenewal(step)
			h.findLease("me")
			h.wait(time.Second)
			h.holdLease()
			h.wait(4 * time.Second)
			died(h)
		}},
		{name: "exits just after a lease renewal", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(8 * time.Second)
			h.holdLease()
			h.wait(500 * time.Millisecond)
			h.append(history.Record{Stall: &history.Stall{Duration: 300 * time.Millisecond}})
			died(h)
		}},
		{name: "reads the lease before each renewal, and exits", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			h.holdLease()
			for range 4 {
				h.wait(2 * time.Second)
				h.findLease("me")
				h.holdLease()
			}
			h.wait(1500 * time.Millisecond)
			died(h)
		}},
		{name: "exits after the response to a lease renewal came in time", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			h.holdLease()
			for range 4 {
				h.wait(2 * time.Second)
				h.holdLease()
			}
			h.wait(1500 * time.Millisecond)
			died(h)
		}},
		{name: "exits just after it sent a lease renewal", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(10 * time.Second)
			h.renew("me")
			h.wait(100 * time.Millisecond)
			died(h)
		}},
		{name: "exits long after a failed lease renewal", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			answerLeaseRequest(h, 500)
			h.wait(time.Minute)
			answerLeaseRequest(h, 200)
			died(h)
		}},
		{name: "exits before its first request", want: Fail, evidence: "subject-9 died", build: func(h *historyBuilder) {
			h.append(history.Record{Process: &history.Process{Name: "subject-9", Event: history.ProcessDied}})
		}},
		{name: "another process exits", want: Pass, build: func(h *historyBuilder) {
			h.append(history.Record{Process: &history.Process{Name: "kwok", Event: history.ProcessDied}})
		}},
	})
}
