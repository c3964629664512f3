package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// retry calls the function call n times, with a pause after each call. The first pause has the
// length first. Each further pause is longer than the previous one by the factor.
func retry(h *historyBuilder, n int, first time.Duration, factor int, call func()) {
	for pause := first; n > 0; n-- {
		call()
		h.wait(pause)
		pause *= time.Duration(factor)
	}
}

func TestBackOff(t *testing.T) {
	runTestCases(t, "back-off", []testCase{
		{name: "retries at 5 ms, doubling", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			retry(h, 11, 5*time.Millisecond, 2, func() { h.create(rs).answered(500) })
		}},
		{name: "retries every 2 ms", want: Fail, evidence: "failed 41 times within 1s", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			retry(h, 100, 2*time.Millisecond, 1, func() { h.create(rs).answered(500) })
		}},
		{name: "retries every 2 ms after a conflict", want: Fail, evidence: "update replicasets.apps status", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 0)
			h.wait(2 * time.Second)
			retry(h, 100, 2*time.Millisecond, 1, func() { h.writeStatus(rs).answered(409) })
		}},
		{name: "retries at once after each pod event", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 41)
			pods := h.running(rs, 40)
			for _, p := range pods {
				h.deliver(h.revise(p.Name, "status", map[string]any{"x": 1}))
				h.create(rs).answered(500)
			}
		}},
		{name: "creates of one batch fail together", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 500)
			h.createAll(rs, 127)
			for _, step := range h.creates(rs, 128) {
				step.answered(403)
			}
			h.wait(5 * time.Millisecond)
			h.create(rs).answered(403)
		}},
		{name: "all answers to a batch are lost long after it was sent", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 500)
			h.createAll(rs, 127)
			batch := h.creates(rs, 128)
			h.wait(12 * time.Second)
			for _, step := range batch {
				step.lost()
			}
		}},
		{name: "sends a batch again every 2 ms after its answers are lost", want: Fail, evidence: "failed 31 times within 1s", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 500)
			h.wait(3 * time.Second)
			for range 35 {
				for _, step := range h.creates(rs, 8) {
					step.lost()
				}
				h.wait(2 * time.Millisecond)
			}
		}},
		{name: "deletes of a batch fail, each pod once", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 100)
			pods := h.running(rs, 100)
			h.deliver(h.scale("web", 0))
			retry(h, 4, 5*time.Millisecond, 2, func() {
				for _, p := range pods {
					h.delete(p).answered(500)
				}
			})
		}},
		{name: "repeated deletes of a pod that is already gone", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 0)
			pods := h.running(rs, 1)
			for range hotLoopMax {
				h.delete(pods[0]).answered(404)
			}
		}},
		{name: "a success between failures restarts the back-off", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 10)
			for range 10 {
				retry(h, 5, time.Millisecond, 2, func() { h.create(rs).answered(500) })
				h.deliver(succeed(h.create(rs))...)
			}
		}},
		{name: "failures of another owner do not count", want: Pass, build: func(h *historyBuilder) {
			web, db := deliveredReplicaSet(h, 1), h.replicaSet("db", 1)
			h.deliver(db)
			h.wait(2 * time.Second)
			for range 25 {
				h.create(web).answered(500)
				h.create(db).answered(500)
			}
		}},
	})
}

func TestBackOffOfDeploymentsAndServices(t *testing.T) {
	writeStatus := func(h *historyBuilder) {
		h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Subresource: "status", Namespace: namespace, Name: "web"}).answered(422)
	}
	runTestCases(t, "back-off", []testCase{
		{name: "retries a rejected Deployment status every 2 ms (mutant D20)", want: Fail, evidence: "Deployment ns/web: update deployments.apps status", build: func(h *historyBuilder) {
			h.deployment("web", 1, rollingUpdate(1, 0))
			h.wait(2 * time.Second)
			retry(h, 100, 2*time.Millisecond, 1, func() { writeStatus(h) })
		}},
		{name: "retries a rejected Deployment status with back-off", want: Pass, build: func(h *historyBuilder) {
			h.deployment("web", 1, rollingUpdate(1, 0))
			retry(h, 11, 5*time.Millisecond, 2, func() { writeStatus(h) })
		}},
		{name: "retries a rejected ReplicaSet every 2 ms", want: Fail, evidence: "create replicasets.apps", build: func(h *historyBuilder) {
			h.deployment("web", 1, rollingUpdate(1, 0))
			h.wait(2 * time.Second)
			retry(h, 100, 2*time.Millisecond, 1, func() { h.createReplicaSet("web", "v1", 1).answered(500) })
		}},
		{name: "retries Endpoints every 2 ms (mutant E15)", want: Fail, evidence: "Service ns/web: update endpoints", build: func(h *historyBuilder) {
			h.service("web", nil)
			h.endpoints("web")
			h.wait(2 * time.Second)
			retry(h, 100, 2*time.Millisecond, 1, func() { h.writeEndpoints("update", "web").answered(500) })
		}},
		{name: "retries Endpoints at once after each pod event", want: Pass, build: func(h *historyBuilder) {
			h.service("web", nil)
			for range 50 {
				h.deliver(h.pod(nil, "web"))
				h.writeEndpoints("update", "web").answered(500)
			}
		}},
		{name: "repeated deletes of Endpoints that are already gone", want: notFailed, build: func(h *historyBuilder) {
			h.remove(h.service("web", nil))
			retry(h, 100, 2*time.Millisecond, 1, func() { h.writeEndpoints("delete", "web").answered(404) })
		}},
	})
}
