package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// lease returns a Lease object with a duration of 15 s and the given holderIdentity.
func lease(holder string) *history.Object {
	return &history.Object{
		Ref:  history.Ref{Resource: leaseResource, Namespace: "kube-system", Name: "l"},
		Body: fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"leaseDurationSeconds":15}}`, holder),
	}
}

// renew records that the process sends an update of the lease. The parameter holder is the
// holderIdentity in the update.
func (h *historyBuilder) renew(holder string) *requestStep {
	return h.request(history.Request{Verb: "update", Resource: leaseResource, Namespace: "kube-system", Name: "l", Object: lease(holder)})
}

// findLease records that the process reads the lease from the API server. The parameter holder
// is the holderIdentity in the response.
func (h *historyBuilder) findLease(holder string) {
	step := h.request(history.Request{Verb: "get", Resource: leaseResource, Namespace: "kube-system", Name: "l"})
	h.append(history.Record{Response: &history.Response{ID: step.request.ID, Code: 200, ServerCode: 200, Reached: true, Object: lease(holder)}})
}

// holdLease records that the process acquires the lease.
func (h *historyBuilder) holdLease() { h.answerRenewal(h.renew("me")) }

// answerRenewal records a successful response to a write of the lease. The holderIdentity in the response is
// "me".
func (h *historyBuilder) answerRenewal(step *requestStep) {
	h.append(history.Record{Response: &history.Response{ID: step.request.ID, Code: 200, ServerCode: 200, Reached: true, Object: lease("me")}})
}

func TestLeaseHolderWrites(t *testing.T) {
	createPods := func(h *historyBuilder) { h.createAll(deliveredReplicaSet(h, 3), 3) }
	runTestCases(t, "lease-holder-writes", []testCase{
		{name: "requests no lease", want: notFailed, build: createPods},
		{name: "writes while another process holds the lease", want: Fail, evidence: "before subject-1 acquired the lease", build: func(h *historyBuilder) {
			h.holdLease()
			h.restart("subject-1")
			h.findLease("me")
			createPods(h)
		}},
		{name: "writes while nobody has tried to acquire the lease", want: notFailed, build: func(h *historyBuilder) {
			h.findLease("")
			createPods(h)
		}},
		{name: "writes while it holds the lease", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(14 * time.Second)
			createPods(h)
		}},
		{name: "writes long after another process has the lease, with the recorder stalled", want: Fail, evidence: "after subject-0 last renewed the lease", build: func(h *historyBuilder) {
			h.holdLease()
			h.findLease("other")
			for range 40 {
				h.wait(200 * time.Millisecond)
				h.stall(300 * time.Millisecond)
			}
			createPods(h)
			h.wait(time.Second)
			createPods(h)
		}},
		{name: "writes before it acquires the lease", want: Fail, evidence: "before subject-0 acquired the lease", build: func(h *historyBuilder) {
			h.findLease("other")
			h.renew("me").answered(409)
			createPods(h)
		}},
		{name: "writes while its lease request has no answer", want: Fail, evidence: "before subject-0 acquired the lease", build: func(h *historyBuilder) {
			h.renew("me")
			createPods(h)
		}},
		{name: "reads the lease as its own after a failed request", want: Fail, evidence: "before subject-0 acquired the lease", build: func(h *historyBuilder) {
			h.renew("me").answered(500)
			h.findLease("me")
			createPods(h)
		}},
		{name: "writes after the lease has expired", want: Fail, evidence: "17s after subject-0 last renewed the lease, which has a duration of 15s", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(9 * time.Second)
			h.renew("me").answered(500)
			h.wait(8 * time.Second)
			createPods(h)
		}},
		{name: "the first call after the lease has expired", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.holdLease()
			h.wait(20 * time.Second)
			h.create(rs)
		}},
		{name: "writes for a moment after a stall in which the lease expired", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(9 * time.Second)
			h.stall(8 * time.Second)
			h.renew("me") // this renewal gets no response
			h.stall(4 * time.Second)
			createPods(h)
		}},
		{name: "writes for longer than a moment after such a stall", want: Fail, evidence: "22.1s after subject-0 last renewed the lease", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(9 * time.Second)
			h.stall(8 * time.Second)
			h.renew("me")
			h.stall(4 * time.Second)
			h.wait(1100 * time.Millisecond)
			createPods(h)
		}},
		{name: "writes after a stall that began after the lease had expired", want: Fail, evidence: "21s after subject-0 last renewed the lease", build: func(h *historyBuilder) {
			h.holdLease()
			h.wait(17 * time.Second)
			h.renew("me").answered(500)
			h.stall(4 * time.Second)
			createPods(h)
		}},
		{name: "renews the lease in time", want: Pass, build: func(h *historyBuilder) {
			for range 4 {
				h.holdLease()
				h.wait(10 * time.Second)
			}
			createPods(h)
		}},
		{name: "was paused while it held the lease", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.processEvent(history.ProcessPaused)
			h.wait(time.Minute)
			h.processEvent(history.ProcessResumed)
			createPods(h)
		}},
		{name: "writes while its own lease lasts, after another process acquired it", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.findLease("other")
			h.wait(5 * time.Second)
			createPods(h)
		}},
		{name: "writes long after another process acquired the lease", want: Fail, evidence: "after subject-0 last renewed the lease", build: func(h *historyBuilder) {
			h.holdLease()
			h.findLease("other")
			h.wait(17 * time.Second)
			createPods(h)
		}},
		{name: "writes after it released the lease", want: Fail, evidence: "after subject-0 released the lease", build: func(h *historyBuilder) {
			h.holdLease()
			h.renew("").answered(200)
			h.wait(2 * time.Second)
			createPods(h)
		}},
		{name: "calls in flight when it released the lease", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.renew("").answered(200)
			createPods(h)
		}},
		{name: "two running processes have one identity", want: Fail, evidence: `subject-1 sent update leases.coordination.k8s.io kube-system/l with the holderIdentity "me" of subject-0`, build: func(h *historyBuilder) {
			h.holdLease()
			h.restart("subject-1")
			h.holdLease()
			createPods(h)
		}},
		{name: "a process has the identity of one that has ended", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			h.restart("subject-0")
			h.holdLease()
			createPods(h)
		}},
		{name: "a restarted process has not acquired the lease", want: Fail, evidence: "before subject-0 acquired the lease", build: func(h *historyBuilder) {
			h.holdLease()
			h.restart("subject-0")
			h.findLease("me")
			h.renew("me")
			createPods(h)
		}},
	})
}
