package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestTerminatingNamespace(t *testing.T) {
	// deployed returns a function that delivers a Deployment and then sends the given number of
	// creates of its ReplicaSet. The API server rejects each create. If events is true, the
	// process receives an event of the Deployment after each create.
	deployed := func(tries int, events bool) func(*historyBuilder) {
		return func(h *historyBuilder) {
			h.deployment("web", 3, nil)
			h.list(objects.ReplicaSetResource)
			h.wait(2 * time.Second)
			retry(h, tries, 5*time.Millisecond, 2, func() {
				h.createReplicaSet("web", "v1", 3).refusedAsTerminating()
				if events {
					h.deliver(h.revise("web", "metadata", fields{"x": h.version}))
				}
			})
		}
	}
	runTestCases(t, "terminating-namespace", []testCase{
		{name: "each pod rejected once", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			for _, batch := range []int{1, 2, 2} {
				for _, step := range h.creates(rs, batch) {
					step.refusedAsTerminating()
				}
			}
		}},
		{name: "pods rejected more than once (mutant R21)", want: Fail, evidence: "rejected 6 creates of subject-0 because the namespace is terminating", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			retry(h, 6, 5*time.Millisecond, 2, func() { h.create(rs).refusedAsTerminating() })
		}},
		{name: "rejected for another reason", want: NotExercised, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			retry(h, 8, 5*time.Millisecond, 2, func() { h.create(rs).answered(403) })
		}},
		{name: "a restarted process starts again", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			h.creates(rs, 1)[0].refusedAsTerminating()
			h.restart("subject-0")
			rs = deliveredReplicaSet(h, 2)
			h.creates(rs, 1)[0].refusedAsTerminating()
			for _, step := range h.creates(rs, 1) {
				step.refusedAsTerminating()
			}
		}},
		{name: "tried again after five minutes", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).refusedAsTerminating()
			h.wait(6 * time.Minute)
			h.create(rs).refusedAsTerminating()
		}},
		{name: "tried again after the event of an unexpected pod", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).refusedAsTerminating()
			h.deliver(h.pod(rs, "web"))
			h.create(rs).refusedAsTerminating()
		}},
		{name: "a ReplicaSet tried again at each event", want: Pass, build: deployed(9, true)},
		{name: "a ReplicaSet tried again without an event", want: Fail, evidence: "Deployment ns/web", build: deployed(9, false)},
		{name: "Endpoints tried again without an event", want: Fail, evidence: "Service ns/web", build: func(h *historyBuilder) {
			h.service("web", nil)
			h.list(objects.EndpointsResource)
			h.wait(2 * time.Second)
			retry(h, 9, 5*time.Millisecond, 2, func() { h.writeEndpoints("create", "web").refusedAsTerminating() })
		}},
	})
}
