package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestQuiet(t *testing.T) {
	quiet := func(s *story) *history.Object {
		rs := settles(s)
		s.phase(history.PhaseQuiet)
		return rs
	}
	judge(t, "no-writes-when-settled", []tale{
		{name: "leases, events, reads", want: Pass, tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.request(history.Request{Verb: "update", Resource: leaseResource, Name: "l"}).answered(200)
			s.request(history.Request{Verb: "create", Resource: "events"}).answered(201)
			s.readLive(rs)
			s.wait(time.Second)
		}},
		{name: "a write that changes nothing", want: Fail, says: "sent update replicasets.apps ns/web", tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.writeStatus(rs).answered(200)
			s.wait(time.Second)
		}},
		{name: "what it was just doing", want: Pass, tell: func(s *story) {
			rs := quiet(s)
			s.writeStatus(rs).answered(200)
			s.wait(2 * time.Second)
		}},
		{name: "a change in a window that was given up excuses nothing", want: Fail, says: "sent update replicasets.apps ns/web", tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.deliver(s.fail(s.find("web-1")))
			s.deliver(s.revise("web-1", "status", map[string]any{"phase": "Running"}))
			s.phase(history.PhaseQuiet)
			s.wait(1500 * time.Millisecond)
			s.writeStatus(rs).answered(200)
			s.wait(time.Second)
		}},
		{name: "the cluster changes of itself, and it reacts", want: Unknown, tell: func(s *story) {
			rs := quiet(s)
			s.wait(1500 * time.Millisecond)
			s.deliver(s.fail(s.find("web-1")))
			s.create(rs)
			s.wait(time.Second)
		}},
		{name: "writes after the end are the teardown", want: Pass, tell: func(s *story) {
			rs := quiet(s)
			s.wait(3 * time.Second)
			s.end()
			s.writeStatus(rs)
		}},
		{name: "watched too briefly", want: Unknown, tell: func(s *story) { quiet(s) }},
		{name: "never converged", want: Unknown, tell: func(s *story) { told(s, 1) }},
	})
}

func TestQuietOfEndpoints(t *testing.T) {
	rewritten := func(capacity string) func(s *story) {
		return func(s *story) {
			s.service("web", fields{"selector": fields{"app": "nobody"}})
			s.annotate(s.endpoints("web"), capacityAnnotation, capacity)
			s.phase(history.PhaseSettle)
			s.phase(history.PhaseQuiet)
			s.wait(1500 * time.Millisecond)
			s.writeEndpoints("update", "web").answered(200)
			s.wait(time.Second)
		}
	}
	judge(t, "no-writes-when-settled", []tale{
		{name: "without a change (E10)", want: Fail, says: "sent update endpoints ns/web", tell: rewritten("")},
		{name: "those that were truncated (trap 32)", want: Pass, tell: rewritten("truncated")},
	})
}
