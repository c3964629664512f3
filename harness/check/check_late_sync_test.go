package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestLateSync(t *testing.T) {
	// idle lets the process renew the lease every second, and do nothing else.
	idle := func(h *historyBuilder, seconds int) {
		for range seconds {
			h.wait(time.Second)
			h.holdLease()
		}
	}
	// oldEndpoints delivers some events of a pod of Service web while the cache lacks the process's own
	// update of web's Endpoints. The Endpoints of Service db then stay empty.
	oldEndpoints := func(h *historyBuilder, events int) {
		h.holdLease()
		pod, other := h.pod(nil, "web"), h.pod(nil, "db")
		h.service("web", nil)
		h.service("db", nil)
		old := h.endpoints("web")
		h.endpoints("db")
		update := h.writeEndpoints("update", "web")
		updated := h.commit(history.Modified, *old)
		h.append(history.Record{Response: &history.Response{ID: update.request.ID, Code: 200, ServerCode: 200, Reached: true, Object: updated}})
		for i := range events {
			h.podWithAddress(pod, "10.0.0.1", i%2 == 0, nil)
		}
		h.deliver(updated)
		h.podWithAddress(other, "10.0.0.2", true, nil)
		idle(h, 10)
	}
	// converged records a ReplicaSet with two pods that has converged. The caches are up to date.
	converged := func(h *historyBuilder) *history.Object {
		rs := convergedReplicaSet(h)
		h.deliver(h.find("web"))
		return rs
	}
	// short records a ReplicaSet of which one pod has failed, and that the process has not replaced.
	short := func(h *historyBuilder) *history.Object {
		h.holdLease()
		rs := converged(h)
		idle(h, 2)
		h.deliver(h.failPod(h.find("web-1")))
		return rs
	}
	runTestCases(t, "late-sync", []testCase{
		{name: "all objects have converged", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			converged(h)
			idle(h, 10)
		}},
		{name: "does not replace a failed pod", want: Fail, evidence: "ReplicaSet ns/web: 1 active pods, expected 2; 1 pods failed or succeeded; subject-0 did nothing for 5s, although its caches were up to date", build: func(h *historyBuilder) {
			short(h)
			idle(h, 10)
		}},
		{name: "replaces a failed pod after 4 s", want: Pass, build: func(h *historyBuilder) {
			rs := short(h)
			idle(h, 4)
			h.deliver(h.createAll(rs, 1)...)
			h.deliver(h.status("web", 2))
			idle(h, 10)
		}},
		{name: "does not hold the lease", want: NotExercised, build: func(h *historyBuilder) {
			h.findLease("other")
			converged(h)
			h.deliver(h.failPod(h.find("web-1")))
			for range 10 {
				h.wait(time.Second)
				h.findLease("other")
			}
		}},
		{name: "the cache lags", want: NotExercised, build: func(h *historyBuilder) {
			h.holdLease()
			converged(h)
			h.failPod(h.find("web-1"))
			idle(h, 10)
		}},
		{name: "a cache has not synced", want: NotExercised, build: func(h *historyBuilder) {
			h.holdLease()
			h.deliver(h.replicaSet("web", 2))
			h.request(history.Request{Verb: "list", Resource: "nodes"})
			idle(h, 10)
		}},
		{name: "a request is in flight", want: NotExercised, build: func(h *historyBuilder) {
			h.create(short(h))
			idle(h, 10)
		}},
		{name: "waits for the retry of a create", want: Pass, build: func(h *historyBuilder) {
			rs := short(h)
			h.create(rs).answered(403)
			idle(h, 10)
		}},
		{name: "waits for the effect of its create", want: Pass, build: func(h *historyBuilder) {
			rs := short(h)
			created := h.createAll(rs, 1)[0]
			h.commit(history.Deleted, *created) // no watch event
			idle(h, 10)
		}},
		{name: "syncs every 3 s, and each sync fails", want: NotExercised, build: func(h *historyBuilder) {
			rs := short(h)
			for range 4 {
				h.create(rs).answered(403)
				idle(h, 3)
			}
		}},
		{name: "gets no CPU time", want: NotExercised, build: func(h *historyBuilder) {
			short(h)
			h.starve(time.Minute)
			idle(h, 2)
		}},
		{name: "reports available pods late", want: Fail, evidence: "status.availableReplicas is 0, expected 2", build: func(h *historyBuilder) {
			h.holdLease()
			h.deliver(h.replicaSet("web", 2))
			h.deliver(h.revise("web", "spec", fields{"replicas": 2, "minReadySeconds": 3}))
			rs := h.find("web")
			h.podsWith(rs, podExcept(func(l *podFields) { l.readyFor = 0 }), podExcept(func(l *podFields) { l.readyFor = 0 }))
			h.deliver(h.revise("web", "status", fields{"observedGeneration": h.find("web").Generation, "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2}))
			idle(h, 12)
		}},
		{name: "an event arrives before the process's own update of the Endpoints", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			pod := h.pod(nil, "web")
			h.service("web", nil)
			old := h.endpoints("web")
			update := h.writeEndpoints("update", "web")
			updated := h.commit(history.Modified, *old)
			h.append(history.Record{Response: &history.Response{ID: update.request.ID, Code: 200, ServerCode: 200, Reached: true, Object: updated}})
			h.podWithAddress(pod, "10.0.0.1", true, nil)
			h.deliver(updated)
			idle(h, 10)
		}},
		{name: "one event before the process's own update does not excuse other Services", want: Fail, evidence: "Service ns/db: Endpoints lack 10.0.0.2:8080",
			build: func(h *historyBuilder) { oldEndpoints(h, 1) }},
		{name: "retries of many syncs with old Endpoints delay those of other Services", want: Pass,
			build: func(h *historyBuilder) { oldEndpoints(h, silentEventsMax+1) }},
		{name: "retries of many syncs with old Endpoints are over after a minute", want: Fail, evidence: "Service ns/db: Endpoints lack 10.0.0.2:8080",
			build: func(h *historyBuilder) {
				oldEndpoints(h, silentEventsMax+1)
				idle(h, 60)
			}},
		{name: "leaves the Endpoints empty", want: Fail, evidence: "Service ns/web: Endpoints lack 10.0.0.1:8080", build: func(h *historyBuilder) {
			h.holdLease()
			pod := h.pod(nil, "web")
			h.service("web", nil)
			h.endpoints("web")
			h.podWithAddress(pod, "10.0.0.1", true, nil)
			idle(h, 10)
		}},
	})
}
