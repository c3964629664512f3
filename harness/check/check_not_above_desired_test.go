package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestNotAboveDesired(t *testing.T) {
	runTestCases(t, "not-above-desired", []testCase{
		{name: "fills up to what is asked for", want: Pass, build: func(h *historyBuilder) {
			h.deliver(h.createAll(deliveredReplicaSet(h, 5), 5)...)
		}},
		{name: "one too many though all was observed (R1)", want: Fail, evidence: "created pod 6 of 5", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.deliver(h.createAll(rs, 5)...)
			h.create(rs)
		}},
		{name: "one too many on the way", want: Fail, evidence: "created pod 6 of 5", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.createAll(rs, 4)
			h.creates(rs, 2)
		}},
		{name: "made again because they do not come into view (trap 9)", want: Fail, evidence: "created pod 4 of 3; 3 of them not observed before their expectations expired", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.createAll(rs, 3)
		}},
		{name: "made again because they are gone, of which no event told", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			for _, p := range h.createAll(rs, 3) {
				h.commit(history.Deleted, *p)
			}
			h.wait(5 * time.Minute)
			h.list(podResource)
			h.createAll(rs, 3)
		}},
		{name: "made again because they failed, of which it was told late", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			for _, p := range pods {
				h.deliver(p, h.failPod(p))
			}
			h.createAll(rs, 3)
		}},
		{name: "more made, as more are asked for, and those made first do not come into view", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.deliver(h.scale("web", 5))
			h.createAll(rs, 2)
		}},
		{name: "and one more than that", want: Fail, evidence: "created pod 6 of 5; 3 of them not observed before their expectations expired", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.deliver(h.scale("web", 5))
			h.createAll(rs, 3)
		}},
		{name: "made anew for an owner of the same name", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.remove(h.find("web"))
			anew := *rs
			anew.UID = "web-anew-uid"
			h.deliver(h.commit(history.Added, anew))
			h.createAll(h.find("web"), 3)
		}},
		{name: "replaces a failed pod", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.running(rs, 5)
			h.deliver(h.failPod(pods[0]))
			h.create(rs)
		}},
		{name: "replaces a terminating pod, live pods above desired (trap 10)", want: Pass, build: func(h *historyBuilder) {
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
		{name: "scaled down long before", want: Fail, evidence: "created pod 3 of 2", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.deliver(h.createAll(rs, 2)...)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.create(rs)
		}},
		{name: "scaled down while it was paused (trap 41)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.deliver(h.createAll(rs, 2)...)
			h.processEvent(history.ProcessPaused)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.processEvent(history.ProcessResumed)
			h.create(rs)
		}},
		{name: "scaled down long before, though it was paused once", want: Fail, evidence: "created pod 3 of 2", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.processEvent(history.ProcessPaused)
			h.wait(3 * time.Second)
			h.processEvent(history.ProcessResumed)
			h.deliver(h.createAll(rs, 2)...)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.create(rs)
		}},
		{name: "the next life of one that was paused", want: Fail, evidence: "created pod 3 of 2", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			h.processEvent(history.ProcessPaused)
			h.processEvent(history.ProcessStopped)
			h.restart(h.subject)
			h.deliver(h.createAll(rs, 2)...)
			h.deliver(h.scale("web", 2))
			h.wait(3 * time.Second)
			h.create(rs)
		}},
		{name: "a pod of unknown outcome appears (trap 12)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			lost := h.create(rs).commitPod().lost()
			succeed(h.create(rs))
			h.deliver(lost.made)
			succeed(h.create(rs))
		}},
		{name: "others make pods of its own meanwhile", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 1)
			h.deliver(h.pod(rs, "web"), h.pod(rs, "web"))
			h.createAll(rs, 2)
		}},
		{name: "a new leader counts what it listed", want: Fail, evidence: "3 active pods in its cache", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.restart("subject-1")
			h.create(rs)
		}},
		{name: "an owner it was never shown", want: notFailed, build: func(h *historyBuilder) {
			h.create(h.replicaSet("web", 0))
		}},
	})
}
