package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestStatusAfterOlderList tests a process that receives an older version of an owner, and then
// the newer version again.
//
// The checker must use the time at which the process received the newer version first.
func TestStatusAfterOlderList(t *testing.T) {
	runTestCases(t, "adopt-and-release", []testCase{
		{name: "an orphan arrived while a sync was in progress", want: Pass, build: func(h *historyBuilder) {
			set := deliveredReplicaSet(h, 1)
			h.wait(3 * time.Second)
			latest := h.revise("web", "status", nil)
			h.deliver(latest)
			h.wait(3 * time.Second)
			making := h.create(set)
			h.wait(100 * time.Millisecond)
			h.deliver(h.pod(nil, "web"))
			h.wait(1500 * time.Millisecond)
			h.deliver(set)
			h.deliver(latest)
			succeed(making)
			h.updateStatus(latest, fields{
				"replicas": 0, "fullyLabeledReplicas": 0, "readyReplicas": 0, "availableReplicas": 0, "observedGeneration": 1,
			}).answered(200)
		}},
	})
}

func TestAdoptAndRelease(t *testing.T) {
	// renewed waits, commits and delivers a new version of the owner, and returns this version.
	renewed := func(h *historyBuilder) *history.Object {
		h.wait(3 * time.Second)
		rs := h.revise("web", "status", nil)
		h.deliver(rs)
		return rs
	}
	counts := func(n int) fields {
		return fields{"replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n, "observedGeneration": 1}
	}
	unmatch := func(h *historyBuilder, pod *history.Object) { h.deliver(h.relabel(pod, "other")) }
	runTestCases(t, "adopt-and-release", []testCase{
		{name: "nothing to adopt or release", want: Pass, build: func(h *historyBuilder) {
			h.running(deliveredReplicaSet(h, 1), 1)
			h.updateStatus(renewed(h), counts(1)).answered(200)
		}},
		{name: "does not release a pod that no longer matches", want: Fail, evidence: "without an earlier attempt to release pod ns/web-1", build: func(h *historyBuilder) {
			unmatch(h, h.running(deliveredReplicaSet(h, 1), 1)[0])
			h.updateStatus(renewed(h), counts(0)).answered(200)
		}},
		{name: "releases a pod that no longer matches", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.running(rs, 1)[0]
			unmatch(h, pod)
			h.release(pod, rs).answered(200)
			h.updateStatus(renewed(h), counts(0)).answered(200)
		}},
		{name: "its release failed", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.running(rs, 1)[0]
			unmatch(h, pod)
			h.release(pod, rs).answered(500)
			h.updateStatus(renewed(h), counts(0)).answered(200)
		}},
		{name: "does not release a pod that matched again after an earlier release", want: Fail, evidence: "without an earlier attempt to release pod ns/web-1", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.running(rs, 1)[0]
			unmatch(h, pod)
			h.release(pod, rs).answered(422)
			h.wait(time.Second)
			h.deliver(h.relabel(pod, "web"))
			h.wait(time.Second)
			unmatch(h, pod)
			h.updateStatus(renewed(h), counts(0)).answered(200)
		}},
		{name: "a pod stopped matching after the version that the status was written from", want: Pass, build: func(h *historyBuilder) {
			pod := h.running(deliveredReplicaSet(h, 1), 1)[0]
			rs := renewed(h)
			unmatch(h, pod)
			h.updateStatus(rs, counts(1)).answered(200)
		}},
		{name: "does not adopt a matching orphan", want: Fail, evidence: "without an earlier attempt to adopt pod ns/web-1", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			h.deliver(h.pod(nil, "web"))
			h.updateStatus(renewed(h), counts(0)).answered(200)
		}},
		{name: "does not adopt a failed orphan (inactive-pods)", want: Pass, build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			h.deliver(h.failPod(h.pod(nil, "web")))
			h.updateStatus(renewed(h), counts(0)).answered(200)
		}},
		{name: "a terminating owner neither adopts nor releases", want: notFailed, build: func(h *historyBuilder) {
			unmatch(h, h.running(deliveredReplicaSet(h, 1), 1)[0])
			h.deliver(h.terminate(h.find("web")))
			h.updateStatus(renewed(h), counts(0)).answered(200)
		}},
		{name: "creates a pod although the owner is gone, which could not adopt an orphan", want: Fail, evidence: "created a pod, and could not adopt pod ns/web-1: the API server had no such owner", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(h.pod(nil, "web"))
			h.wait(time.Millisecond)
			h.read(rs, nil)
			h.create(rs)
		}},
		{name: "creates a pod after a read whose reason was a failed status write", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(h.pod(nil, "web"))
			h.wait(time.Millisecond)
			h.updateStatus(rs, counts(0)).answered(409)
			h.read(rs, nil)
			h.create(rs)
		}},
		{name: "creates a pod for the former owner with the same name", want: Fail, evidence: "the API server had another owner of this name", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(h.pod(nil, "web"))
			h.wait(time.Millisecond)
			h.read(rs, namesake(rs))
			h.create(rs)
		}},
		{name: "creates a pod after the orphan stopped matching", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.wait(time.Millisecond)
			h.read(rs, nil)
			unmatch(h, pod)
			h.create(rs)
		}},
		{name: "creates a pod, and the orphan appeared after the read", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.read(rs, nil)
			h.wait(time.Millisecond)
			h.deliver(h.pod(nil, "web"))
			h.create(rs)
		}},
	})
}
