package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestOrphanEndpoints(t *testing.T) {
	settled := func(h *historyBuilder) {
		h.phase(history.PhaseSettle)
		h.wait(time.Minute)
	}
	runTestCases(t, "orphan-endpoints", []testCase{
		{name: "deleted with its Service", want: Pass, build: func(h *historyBuilder) {
			service, e := h.service("web", nil), h.endpoints("web")
			h.remove(service)
			h.writeEndpoints("delete", "web").answered(200)
			h.remove(e)
			settled(h)
		}},
		{name: "deleted just when a Service that it was not shown has come to be", want: Pass, build: func(h *historyBuilder) { buildEarlyLeftovers(h, time.Second) }},
		{name: "left, though the Service is known to be gone", want: Fail, evidence: "Endpoints ns/web: not deleted, although subject-0 observed the deletion of their Service",
			build: func(h *historyBuilder) {
				service := h.service("web", nil)
				h.endpoints("web")
				h.remove(service)
				settled(h)
			}},
		{name: "left, though it was there at the start", want: Fail, evidence: "not deleted, although they had no Service when subject-1 started", build: func(h *historyBuilder) {
			h.endpoints("web")
			h.restart("subject-1")
			settled(h)
		}},
		{name: "made later without a Service (trap 33)", want: NotExercised, build: func(h *historyBuilder) {
			h.endpoints("web")
			settled(h)
		}},
		{name: "made after its Service had gone (trap 33)", want: NotExercised, build: func(h *historyBuilder) {
			h.remove(h.service("web", nil))
			h.wait(time.Second)
			h.endpoints("web")
			settled(h)
		}},
		{name: "a leader election's record is deleted at the start (E3)", want: Fail, evidence: "which are a leader-election record", build: func(h *historyBuilder) {
			h.leaderElectionEndpoints("lock")
			h.restart("subject-1")
			h.writeEndpoints("delete", "lock").answered(200)
			settled(h)
		}},
		{name: "it is left alone", want: Pass, build: func(h *historyBuilder) {
			h.leaderElectionEndpoints("lock")
			h.restart("subject-1")
			settled(h)
		}},
		{name: "it was no record a moment ago", want: notFailed, build: func(h *historyBuilder) {
			e := h.endpoints("lock")
			h.restart("subject-1")
			o := *e
			o.Annotations = map[string]string{leaderAnnotation: "{}"}
			h.deliver(h.commit(history.Modified, o))
			h.writeEndpoints("delete", "lock").answered(200)
			settled(h)
		}},
		{name: "written though the Service selects nothing", want: Fail, evidence: "whose Service has no selector or is of type ExternalName", build: func(h *historyBuilder) {
			h.service("web", fields{"selector": nil})
			h.wait(3 * time.Second)
			h.writeEndpoints("create", "web").answered(201)
			settled(h)
		}},
		{name: "written though the Service is elsewhere by now (E6)", want: Fail, evidence: "ExternalName", build: func(h *historyBuilder) {
			o := *h.service("web", nil)
			o.Body = encoded(fields{"spec": fields{"type": "ExternalName", "selector": fields{"app": "web"}}})
			h.deliver(h.commit(history.Modified, o))
			h.wait(3 * time.Second)
			h.writeEndpoints("update", "web").answered(200)
			settled(h)
		}},
		{name: "it was here a moment ago", want: notFailed, build: func(h *historyBuilder) {
			o := *h.service("web", nil)
			o.Body = encoded(fields{"spec": fields{"type": "ExternalName"}})
			h.deliver(h.commit(history.Modified, o))
			h.writeEndpoints("update", "web").answered(200)
			settled(h)
		}},
		{name: "written where no Service is", want: Fail, evidence: "which have no Service", build: func(h *historyBuilder) {
			h.writeEndpoints("create", "web").answered(201)
			settled(h)
		}},
		{name: "deleted where the Service is", want: Fail, evidence: "whose Service exists", build: func(h *historyBuilder) {
			h.service("web", nil)
			h.endpoints("web")
			h.wait(3 * time.Second)
			h.writeEndpoints("delete", "web").answered(200)
			settled(h)
		}},
		{name: "deleted at the start, before the Service is seen (trap 8)", want: notFailed, build: func(h *historyBuilder) {
			h.endpoints("web")
			h.restart("subject-1")
			h.service("web", nil)
			h.writeEndpoints("delete", "web").answered(200)
			settled(h)
		}},
	})
}
