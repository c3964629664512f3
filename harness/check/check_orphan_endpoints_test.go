package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestOrphanEndpoints(t *testing.T) {
	settled := func(h *historyBuilder) {
		h.phase(history.PhaseSettle)
		h.wait(time.Minute)
	}
	runTestCases(t, "orphan-endpoints", []testCase{
		{name: "deletes Endpoints after their Service", want: Pass, build: func(h *historyBuilder) {
			service, e := h.service("web", nil), h.endpoints("web")
			h.remove(service)
			h.writeEndpoints("delete", "web").answered(200)
			h.remove(e)
			settled(h)
		}},
		{name: "deletes Endpoints just after an unobserved Service was created", want: Pass, build: func(h *historyBuilder) { buildEarlyLeftovers(h, time.Second) }},
		{name: "keeps Endpoints after it observed the deletion of their Service", want: Fail, evidence: "Endpoints ns/web: not deleted, although subject-0 observed the deletion of the Service",
			build: func(h *historyBuilder) {
				service := h.service("web", nil)
				h.endpoints("web")
				h.remove(service)
				settled(h)
			}},
		{name: "keeps Endpoints that had no Service at the start", want: Fail, evidence: "not deleted, although the Endpoints had no Service when subject-1 started", build: func(h *historyBuilder) {
			h.endpoints("web")
			h.restart("subject-1")
			settled(h)
		}},
		{name: "keeps Endpoints that were created later without a Service (manual-endpoints-edits)", want: NotExercised, build: func(h *historyBuilder) {
			h.endpoints("web")
			settled(h)
		}},
		{name: "keeps Endpoints that were created after their Service was deleted (manual-endpoints-edits)", want: NotExercised, build: func(h *historyBuilder) {
			h.remove(h.service("web", nil))
			h.wait(time.Second)
			h.endpoints("web")
			settled(h)
		}},
		{name: "deletes a leader-election record at the start (mutant E3)", want: Fail, evidence: "which are a leader-election record", build: func(h *historyBuilder) {
			h.leaderElectionEndpoints("lock")
			h.restart("subject-1")
			h.writeEndpoints("delete", "lock").answered(200)
			settled(h)
		}},
		{name: "keeps a leader-election record", want: Pass, build: func(h *historyBuilder) {
			h.leaderElectionEndpoints("lock")
			h.restart("subject-1")
			settled(h)
		}},
		{name: "deletes Endpoints that became a leader-election record within the lag", want: notFailed, build: func(h *historyBuilder) {
			e := h.endpoints("lock")
			h.restart("subject-1")
			o := *e
			o.Annotations = map[string]string{objects.LeaderAnnotation: "{}"}
			h.deliver(h.commit(history.Modified, o))
			h.writeEndpoints("delete", "lock").answered(200)
			settled(h)
		}},
		{name: "writes Endpoints of a Service without a selector", want: Fail, evidence: "whose Service has no selector or is of type ExternalName", build: func(h *historyBuilder) {
			h.service("web", fields{"selector": nil})
			h.wait(3 * time.Second)
			h.writeEndpoints("create", "web").answered(201)
			settled(h)
		}},
		{name: "writes Endpoints long after the Service became ExternalName (mutant E6)", want: Fail, evidence: "ExternalName", build: func(h *historyBuilder) {
			o := *h.service("web", nil)
			o.Body = encoded(fields{"spec": fields{"type": "ExternalName", "selector": fields{"app": "web"}}})
			h.deliver(h.commit(history.Modified, o))
			h.wait(3 * time.Second)
			h.writeEndpoints("update", "web").answered(200)
			settled(h)
		}},
		{name: "writes Endpoints just after the Service became ExternalName", want: notFailed, build: func(h *historyBuilder) {
			o := *h.service("web", nil)
			o.Body = encoded(fields{"spec": fields{"type": "ExternalName"}})
			h.deliver(h.commit(history.Modified, o))
			h.writeEndpoints("update", "web").answered(200)
			settled(h)
		}},
		{name: "creates Endpoints without a Service", want: Fail, evidence: "which have no Service", build: func(h *historyBuilder) {
			h.writeEndpoints("create", "web").answered(201)
			settled(h)
		}},
		{name: "deletes Endpoints of an existing Service", want: Fail, evidence: "whose Service exists", build: func(h *historyBuilder) {
			h.service("web", nil)
			h.endpoints("web")
			h.wait(3 * time.Second)
			h.writeEndpoints("delete", "web").answered(200)
			settled(h)
		}},
		{name: "deletes Endpoints at the start, before the Service is in the cache (early-leftovers)", want: notFailed, build: func(h *historyBuilder) {
			h.endpoints("web")
			h.restart("subject-1")
			h.service("web", nil)
			h.writeEndpoints("delete", "web").answered(200)
			settled(h)
		}},
	})
}
