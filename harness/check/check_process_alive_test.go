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
	trouble := func(h *historyBuilder, code int) {
		h.request(history.Request{Verb: "update", Resource: leaseResource, Namespace: "kube-system", Name: "l"}).answered(code)
	}
	runTestCases(t, "process-alive", []testCase{
		{name: "lives", want: Pass, build: func(*historyBuilder) {}},
		{name: "dies", want: Fail, evidence: "subject-0 died: exit status 2", build: died},
		{name: "was stopped", want: Pass, build: func(h *historyBuilder) {
			h.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStopped}})
			h.restart("subject-0")
		}},
		{name: "exits for it lost its lease", want: Pass, build: func(h *historyBuilder) {
			trouble(h, 500)
			h.wait(10 * time.Second)
			died(h)
		}},
		{name: "exits for its lease gets no answer", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(8 * time.Second)
			h.renew("me")
			h.wait(2 * time.Second)
			died(h)
		}},
		{name: "dies while a call for its lease gets no answer, and has the time to try again", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(2 * time.Second)
			h.renew("me")
			h.wait(1100 * time.Millisecond)
			died(h)
		}},
		{name: "dies with a call for its lease just sent", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(10 * time.Second)
			h.renew("me")
			h.wait(100 * time.Millisecond)
			died(h)
		}},
		{name: "dies long after trouble with its lease", want: Fail, evidence: "died", build: func(h *historyBuilder) {
			trouble(h, 500)
			h.wait(time.Minute)
			trouble(h, 200)
			died(h)
		}},
		{name: "it dies before it has said a word", want: Fail, evidence: "subject-9 died", build: func(h *historyBuilder) {
			h.append(history.Record{Process: &history.Process{Name: "subject-9", Event: history.ProcessDied}})
		}},
		{name: "something else dies", want: Pass, build: func(h *historyBuilder) {
			h.append(history.Record{Process: &history.Process{Name: "kwok", Event: history.ProcessDied}})
		}},
	})
}
