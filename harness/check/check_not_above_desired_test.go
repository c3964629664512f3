package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// adoptedOrphans delivers a ReplicaSet of three replicas and two orphans, which the process then adopts.
// The cache still shows the pods without a controller.
func adoptedOrphans(h *historyBuilder) (rs *history.Object, orphans []*history.Object) {
	rs = deliveredReplicaSet(h, 3)
	for range 2 {
		o := h.pod(nil, "web")
		h.deliver(o)
		orphans = append(orphans, o)
	}
	h.wait(3 * time.Second)
	h.readLive(rs)
	for _, o := range orphans {
		h.adopt(o, rs).answered(200)
	}
	return rs, orphans
}

// createAfterAdoption records that the process creates n pods after it has adopted two.
func createAfterAdoption(h *historyBuilder, n int) {
	rs, _ := adoptedOrphans(h)
	h.createAll(rs, n)
}

func TestNotAboveDesired(t *testing.T) {
	runTestCases(t, "not-above-desired", []testCase{
		{name: "creates up to spec.replicas", want: Pass, build: func(h *historyBuilder) {
			h.deliver(h.createAll(deliveredReplicaSet(h, 5), 5)...)
		}},
		{name: "creates one more after it observes all (mutant R1)", want: Fail, evidence: "created a pod, for a total of 6 (5 wanted)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.deliver(h.createAll(rs, 5)...)
			h.create(rs)
		}},
		{name: "creates what is missing besides adopted pods", want: Pass, build: func(h *historyBuilder) { createAfterAdoption(h, 1) }},
		{name: "does not count the pods that it has adopted", want: Fail, evidence: "created a pod, for a total of 4 (3 wanted): 0 active pods in its cache, plus 2 adopted pods and ", build: func(h *historyBuilder) {
			createAfterAdoption(h, 3)
		}},
		{name: "a second adoption finds that the pod is gone", want: Pass, build: func(h *historyBuilder) {
			rs, orphans := adoptedOrphans(h)
			h.adopt(orphans[1], rs).answered(404)
			h.createAll(rs, 2)
		}},
		{name: "adopts a pod again that it has observed as adopted", want: Pass, build: func(h *historyBuilder) {
			rs, orphans := adoptedOrphans(h)
			for _, o := range orphans {
				h.deliver(h.commit(history.Modified, controlled(*o, "ReplicaSet", rs)))
				h.adopt(o, rs).answered(200)
			}
			h.createAll(rs, 1)
		}},
		{name: "observes the adoption before its response", want: Fail, evidence: "created a pod, for a total of 4 (3 wanted)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			o := h.pod(nil, "web")
			h.deliver(o)
			h.wait(3 * time.Second)
			h.readLive(rs)
			step := h.adopt(o, rs)
			h.deliver(h.commit(history.Modified, controlled(*o, "ReplicaSet", rs)))
			step.answered(200)
			h.createAll(rs, 3)
		}},
		{name: "an adopted pod fails, observed before the create", want: Pass, build: func(h *historyBuilder) {
			rs, orphans := adoptedOrphans(h)
			h.deliver(h.failPod(orphans[0]))
			h.createAll(rs, 2)
		}},
		{name: "does not count adopted pods that it has observed", want: Fail, evidence: "created a pod, for a total of 4 (3 wanted)", build: func(h *historyBuilder) {
			rs, orphans := adoptedOrphans(h)
			for _, o := range orphans {
				h.deliver(h.commit(history.Modified, controlled(*o, "ReplicaSet", rs)))
			}
			h.creates(rs, 2)
		}},
		{name: "creates one more before it observes all", want: Fail, evidence: "created a pod, for a total of 6 (5 wanted)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.createAll(rs, 4)
			h.creates(rs, 2)
		}},
		{name: "creates pods again that it has not observed for 5 minutes (late-pods)", want: Fail, evidence: "created a pod, for a total of 4 (3 wanted), including 3 earlier pods whose expectations expired before the process observed them", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.createAll(rs, 3)
		}},
		{name: "creates pods again that a list shows as deleted", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			for _, p := range h.createAll(rs, 3) {
				h.commit(history.Deleted, *p)
			}
			h.wait(5 * time.Minute)
			h.list(objects.PodResource)
			h.createAll(rs, 3)
		}},
		{name: "creates pods again that failed, observed late", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			for _, p := range pods {
				h.deliver(p, h.failPod(p))
			}
			h.createAll(rs, 3)
		}},
		{name: "scaled up: creates more while the first pods are unobserved", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.deliver(h.scale("web", 5))
			h.createAll(rs, 2)
		}},
		{name: "scaled up: creates one too many while the first pods are unobserved", want: Fail, evidence: "created a pod, for a total of 6 (5 wanted), including 3 earlier pods whose expectations expired before the process observed them", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.deliver(h.scale("web", 5))
			h.createAll(rs, 3)
		}},
		{name: "creates pods for a new owner with the same name", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.remove(h.find("web"))
			recreated := *rs
			recreated.UID = "web-anew-uid"
			h.deliver(h.commit(history.Added, recreated))
			h.createAll(h.find("web"), 3)
		}},
		{name: "replaces a failed pod", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.failPod(pods[0]))
			h.create(rs)
		}},
		{name: "replaces terminating pods (terminating-pods-not-counted)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.terminate(pods[0]), h.terminate(pods[1]))
			h.createAll(rs, 2)
		}},
		{name: "scaled down within the lag", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.createAll(rs, 3)
			h.deliver(h.scale("web", 2))
			h.createAll(rs, 2)
		}},
		{name: "scaled down long before", want: Fail, evidence: "created a pod, for a total of 3 (2 wanted)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.deliver(h.createAll(rs, 2)...)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.create(rs)
		}},
		{name: "scaled down while the process was paused (paused-process)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.deliver(h.createAll(rs, 2)...)
			h.processEvent(history.ProcessPaused)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.processEvent(history.ProcessResumed)
			h.create(rs)
		}},
		{name: "scaled down long after the process was paused", want: Fail, evidence: "created a pod, for a total of 3 (2 wanted)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.processEvent(history.ProcessPaused)
			h.wait(3 * time.Second)
			h.processEvent(history.ProcessResumed)
			h.deliver(h.createAll(rs, 2)...)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.create(rs)
		}},
		{name: "scaled down long before, in a restarted process", want: Fail, evidence: "created a pod, for a total of 3 (2 wanted)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.processEvent(history.ProcessPaused)
			h.processEvent(history.ProcessStopped)
			h.restart(h.subject)
			h.deliver(h.createAll(rs, 2)...)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.create(rs)
		}},
		{name: "a create without an answer succeeded (lost-response)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			lost := h.create(rs).commitPod().lost()
			succeed(h.create(rs))
			h.deliver(lost.made)
			succeed(h.create(rs))
		}},
		{name: "a broken connection may have lost the answer to a create (lost-response)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			h.createAll(rs, 2)
			h.breakConnection(objects.ServiceResource)
			succeed(h.create(rs))
		}},
		{name: "a broken connection may have lost the answer, but the process has observed the pods", want: Fail, evidence: "2 active pods in its cache", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			h.deliver(h.createAll(rs, 2)...)
			h.breakConnection(objects.ServiceResource)
			succeed(h.create(rs))
		}},
		{name: "the connection breaks long after the answers", want: Fail, evidence: "2 earlier creates not yet observed", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			h.createAll(rs, 2)
			h.wait(2 * time.Second)
			h.breakConnection(objects.ServiceResource)
			h.create(rs)
		}},
		{name: "another client creates pods of the owner", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 1)
			h.deliver(h.pod(rs, "web"), h.pod(rs, "web"))
			h.createAll(rs, 2)
		}},
		{name: "a new leader counts the listed pods", want: Fail, evidence: "3 active pods in its cache", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.restart("subject-1")
			h.create(rs)
		}},
		{name: "an owner that is not in the cache", want: notFailed, build: func(h *historyBuilder) {
			h.create(h.replicaSet("web", 0))
		}},
	})
}
