package check

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestNoWritesWhenSettled(t *testing.T) {
	quiet := func(h *historyBuilder) *history.Object {
		rs := convergedReplicaSet(h)
		h.phase(history.PhaseQuiet)
		return rs
	}
	runTestCases(t, "no-writes-when-settled", []testCase{
		{name: "leases, events and reads", want: Pass, build: func(h *historyBuilder) {
			rs := quiet(h)
			h.wait(1500 * time.Millisecond)
			h.request(history.Request{Verb: "update", Resource: leaseResource, Name: "l"}).answered(200)
			h.request(history.Request{Verb: "create", Resource: "events"}).answered(201)
			h.readLive(rs)
			h.wait(time.Second)
		}},
		{name: "an update that changes nothing", want: Fail, evidence: "sent update replicasets.apps ns/web", build: func(h *historyBuilder) {
			rs := quiet(h)
			h.wait(1500 * time.Millisecond)
			h.writeStatus(rs).answered(200)
			h.wait(time.Second)
		}},
		{name: "a refused request is no excuse with a contract", want: Fail, evidence: "sent update replicasets.apps ns/web", build: func(h *historyBuilder) {
			rs := quiet(h)
			for range 2 {
				h.request(history.Request{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "ns", Name: "web-1"}).answered(400)
			}
			h.wait(1500 * time.Millisecond)
			h.writeStatus(rs).answered(200)
			h.wait(time.Second)
		}},
		{name: "completes a write within the lag", want: Pass, build: func(h *historyBuilder) {
			rs := quiet(h)
			h.writeStatus(rs).answered(200)
			h.wait(2 * time.Second)
		}},
		{name: "a write that was decided before makes the owner pending again", want: Pass, build: func(h *historyBuilder) {
			rs := quiet(h)
			h.deliver(h.status("web", 0))
			h.wait(1500 * time.Millisecond)
			h.writeStatus(rs).answered(200)
			h.deliver(h.status("web", 1))
			h.phase(history.PhaseQuiet)
			h.wait(2500 * time.Millisecond)
		}},
		{name: "a write makes the owner pending again twice", want: Fail, evidence: "sent update replicasets.apps ns/web", build: func(h *historyBuilder) {
			rs := quiet(h)
			for range 2 {
				h.deliver(h.status("web", 0))
				h.wait(1500 * time.Millisecond)
				h.writeStatus(rs).answered(200)
				h.deliver(h.status("web", 1))
				h.phase(history.PhaseQuiet)
			}
			h.wait(2500 * time.Millisecond)
		}},
		{name: "a change during an earlier settle attempt is no excuse", want: Fail, evidence: "sent update replicasets.apps ns/web", build: func(h *historyBuilder) {
			rs := quiet(h)
			h.wait(1500 * time.Millisecond)
			for _, ready := range []bool{false, true} {
				pod := *h.find("web-1")
				pod.Body = podBody("Running", ready)
				h.deliver(h.commit(history.Modified, pod))
			}
			h.phase(history.PhaseQuiet)
			h.wait(1500 * time.Millisecond)
			h.writeStatus(rs).answered(200)
			h.wait(time.Second)
		}},
		{name: "a pod changes within the lag, and the controller reacts after it", want: Pass, build: func(h *historyBuilder) {
			rs := quiet(h)
			h.wait(900 * time.Millisecond)
			h.deliver(h.commit(history.Modified, *h.find("web-1")))
			h.wait(200 * time.Millisecond)
			h.writeStatus(rs).answered(200)
			h.wait(2 * time.Second)
		}},
		{name: "a pod changes within the lag, and the controller writes long after it", want: Fail, evidence: "sent update replicasets.apps ns/web", build: func(h *historyBuilder) {
			rs := quiet(h)
			for range 2 {
				h.wait(900 * time.Millisecond)
				h.deliver(h.commit(history.Modified, *h.find("web-1")))
			}
			h.wait(200 * time.Millisecond)
			h.writeStatus(rs).answered(200)
			h.wait(2 * time.Second)
		}},
		{name: "a pod fails, and the controller reacts", want: Unknown, build: func(h *historyBuilder) {
			rs := quiet(h)
			h.wait(1500 * time.Millisecond)
			h.deliver(h.failPod(h.find("web-1")))
			h.create(rs)
			h.wait(time.Second)
		}},
		{name: "writes during teardown", want: Pass, build: func(h *historyBuilder) {
			rs := quiet(h)
			h.wait(3 * time.Second)
			h.end()
			h.writeStatus(rs)
		}},
		{name: "the run ends too early", want: Unknown, build: func(h *historyBuilder) { quiet(h) }},
		{name: "the run never converged", want: Unknown, build: func(h *historyBuilder) { deliveredReplicaSet(h, 1) }},
	})
}

func TestNoWritesWhenSettledOfEndpoints(t *testing.T) {
	rewritten := func(capacity string) func(h *historyBuilder) {
		return func(h *historyBuilder) {
			h.service("web", fields{"selector": fields{"app": "nobody"}})
			h.annotate(h.endpoints("web"), objects.OverCapacityAnnotation, capacity)
			h.phase(history.PhaseSettle)
			h.phase(history.PhaseQuiet)
			h.wait(1500 * time.Millisecond)
			h.writeEndpoints("update", "web").answered(200)
			h.wait(time.Second)
		}
	}
	runTestCases(t, "no-writes-when-settled", []testCase{
		{name: "updates Endpoints without a change (mutant E10)", want: Fail, evidence: "sent update endpoints ns/web", build: rewritten("")},
		{name: "updates truncated Endpoints (truncated-endpoints)", want: Pass, build: rewritten("truncated")},
	})
}

// TestExcuseKnownUpstream checks the result of no-writes-when-settled in a run that did not
// converge. A known upstream issue may be the reason.
func TestExcuseKnownUpstream(t *testing.T) {
	for _, test := range []struct {
		other Verdict
		want  Verdict
		text  string
	}{
		{Pass, Unknown, "the run did not converge"},
		{KnownUpstream, NotExercised, "a known upstream issue prevented convergence (see converged)"},
	} {
		checker := newNoWritesWhenSettledChecker(Settings{Quiet: 2 * time.Second, Controllers: kube.Controllers})
		results := []Result{{Check: "converged", Verdict: test.other}, checker.Result()}
		excuseKnownUpstream([]*runnerEntry{{}, {checker: checker}}, results)
		if got := results[1]; got.Verdict != test.want || !strings.HasPrefix(got.Reason, test.text) {
			t.Errorf("%s: %s, %q; want %s, %q", test.other, got.Verdict, got.Reason, test.want, test.text)
		}
	}
}
