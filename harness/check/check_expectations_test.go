package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// withExcessObserved delivers a ReplicationController with three replicas, and a pod that the
// controller did not expect.
//
// The API server created this pod, but the controller got no response to the create. The
// controller takes the event of this pod for the event of another pod that it created.
func withExcessObserved(h *historyBuilder) *history.Object {
	rc := h.owner(controllers, "web", "web", 3)
	h.deliver(rc)
	first := succeed(h.create(rc))
	batch := h.creates(rc, 2)
	lost := batch[0].commitPod().lost()
	succeed(batch[1])
	h.deliver(first[0], lost.made)
	succeed(h.create(rc))
	return rc
}

// deletesAgainAfter scales an owner to zero. The process deletes the pods, gets no events for the
// given time, and deletes the pods again at the moment when it gets all events. Before that, it also
// deletes them the given number of times, each after the given time.
func (h *historyBuilder) deletesAgainAfter(d time.Duration, times int) {
	rs := deliveredReplicaSet(h, 3)
	pods := h.running(rs, 3)
	h.deliver(h.scale("web", 0))
	var deleted []*history.Object
	for _, pod := range pods {
		step := h.delete(pod)
		deleted = append(deleted, h.terminate(pod))
		step.answered(200)
	}
	for range times {
		h.wait(d)
		for _, pod := range pods {
			h.delete(pod).answered(200)
		}
	}
	h.wait(d)
	h.deliver(deleted...)
	for _, pod := range pods {
		h.delete(pod)
	}
}

// createsAfterRemoval builds a ReplicaSet that wants two pods and has one. The cache of the process loses
// the ReplicaSet, and then the pod. The process then creates pods.
func (h *historyBuilder) createsAfterRemoval(creates int) {
	rs := deliveredReplicaSet(h, 2)
	pods := h.createAll(rs, 2)
	h.deliver(pods...)
	h.remove(pods[0])
	h.remove(rs)
	h.remove(pods[1])
	for range creates {
		h.create(rs)
	}
}

// deletesAfterLateAnswer builds a ReplicaSet that is scaled from three pods to two while a create is in
// flight. The event of the new pod arrives before the response to the create, and the given time before
// it. So does the event of another pod, which a user deletes. The process then deletes a pod.
func (h *historyBuilder) deletesAfterLateAnswer(late time.Duration) {
	rs := deliveredReplicaSet(h, 3)
	pods := h.running(rs, 2)
	h.wait(3 * time.Second)
	step := h.create(rs).commitPod()
	h.deliver(h.scale("web", 2))
	h.deliver(step.made)
	h.deliver(h.terminate(pods[0]))
	h.wait(late)
	step.answered(201)
	h.delete(step.made).answered(200)
}

func TestExpectations(t *testing.T) {
	runTestCases(t, "expectations", []testCase{
		{name: "creates the missing pods, then waits", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.createAll(rs, 3)
			h.deliver(pods[:2]...)
			h.wait(time.Second)
			h.deliver(pods[2])
		}},
		{name: "creates more before it observes the first ones", want: Fail, evidence: "sent a create before it had observed its earlier creates and deletes: 0 active pods in its cache, 3 wanted; 3 earlier creates", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.create(rs)
		}},
		{name: "the owner and its pod are deleted while a worker has read the owner", want: Pass, build: func(h *historyBuilder) { h.createsAfterRemoval(2) }},
		{name: "the owner is deleted, and the process creates more pods than are missing", want: Fail, evidence: "sent a create", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			h.deliver(h.createAll(rs, 2)...)
			h.remove(rs)
			h.create(rs)
		}},
		{name: "the owner and its pod are deleted, and the process creates more than were wanted", want: Fail, evidence: "sent a create", build: func(h *historyBuilder) { h.createsAfterRemoval(3) }},
		{name: "creates more after it observes some", want: Fail, evidence: "sent a create", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.createAll(rs, 3)
			h.deliver(pods[:2]...)
			h.create(rs)
		}},
		{name: "scaled up while it waits: creates more at once", want: Fail, evidence: "sent a create", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.deliver(h.scale("web", 5))
			h.create(rs)
		}},
		{name: "scaled up while it waits: creates more after it observes all", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.createAll(rs, 3)
			h.deliver(h.scale("web", 5))
			h.deliver(pods...)
			h.createAll(rs, 2)
		}},
		{name: "scaled down during a batch: completes the batch", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 7)
			h.createAll(rs, 3)
			h.deliver(h.scale("web", 1))
			h.createAll(rs, 4)
		}},
		{name: "a pod fails during a batch: replaced after the batch is observed", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 4)
			old := h.running(rs, 1)
			pods := h.createAll(rs, 3)
			h.deliver(h.failPod(old[0]))
			h.deliver(pods...)
			h.create(rs)
		}},
		{name: "a pod fails during a batch: replaced at once", want: Fail, evidence: "sent a create", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 4)
			old := h.running(rs, 1)
			h.createAll(rs, 3)
			h.deliver(h.failPod(old[0]))
			h.create(rs)
		}},
		{name: "repeats rejected creates", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.create(rs).answered(409)
			h.create(rs).answered(500)
			h.create(rs).lost()
			h.createAll(rs, 3)
		}},
		{name: "creates more after five minutes (expired-expectations)", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(5 * time.Minute)
			h.deliver(h.scale("web", 6))
			h.createAll(rs, 3)
		}},
		{name: "creates more after four minutes", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(4 * time.Minute)
			h.createAll(rs, 3)
		}},
		{name: "deletes again after five minutes, while the deletions arrive (expired-expectations)", want: notFailed, build: func(h *historyBuilder) {
			h.deletesAgainAfter(5*time.Minute, 0)
		}},
		{name: "deletes again after five and ten minutes (expired-expectations)", want: notFailed, build: func(h *historyBuilder) {
			h.deletesAgainAfter(5*time.Minute, 1)
		}},
		{name: "deletes again after four minutes, while the deletions arrive", want: Fail, evidence: "sent a delete", build: func(h *historyBuilder) {
			h.deletesAgainAfter(4*time.Minute, 0)
		}},
		{name: "a restarted process counts the listed pods", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 2)
			h.restart("subject-0")
			h.create(rs)
		}},
		{name: "a restarted process repeats the batch (mutant R28)", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.restart("subject-1")
			h.create(rs)
		}},
		{name: "creates a pod again after a broken connection may have lost the answer (lost-response)", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.breakConnection(objects.ServiceResource)
			h.create(rs)
		}},
		{name: "creates more pods than answers may be lost", want: Fail, evidence: "sent a create", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.breakConnection(objects.ServiceResource)
			h.createAll(rs, 3)
			h.create(rs)
		}},
		{name: "creates a pod again long before the connection breaks", want: Fail, evidence: "sent a create", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.createAll(rs, 3)
			h.wait(2 * time.Second)
			h.breakConnection(objects.ServiceResource)
			h.create(rs)
		}},
		{name: "deletes a pod again after a broken connection may have lost the answer (lost-response)", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 2))
			h.delete(pods[0]).answered(200)
			h.breakConnection(objects.ServiceResource)
			h.delete(pods[0]).answered(200)
		}},
		{name: "observes a create without an answer instead of another (lost-response)", want: notFailed, build: func(h *historyBuilder) {
			withExcessObserved(h)
		}},
		{name: "observes it instead of two others", want: Fail, build: func(h *historyBuilder) {
			h.create(withExcessObserved(h))
		}},
		{name: "client-go repeats a create that succeeded unseen (client-retries)", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.create(rs).commitPod().answered(500)
			h.createAll(rs, 3)
		}},
		{name: "the event arrives before the answer", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			step := h.create(rs).commitPod()
			h.deliver(step.made)
			step.answered(201)
			succeed(h.create(rs))
		}},
		{name: "the event arrives before the answer, and one create too many", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			step := h.create(rs).commitPod()
			h.deliver(step.made)
			step.answered(201)
			succeed(h.create(rs))
			h.create(rs)
		}},
		{name: "the event arrives before the answer, and then the deletion of another pod: deletes one for the time between", want: notFailed, build: func(h *historyBuilder) {
			h.deletesAfterLateAnswer(0)
		}},
		{name: "the event and the deletion of another pod arrive long before the answer", want: Fail, evidence: "sent a delete", build: func(h *historyBuilder) {
			h.deletesAfterLateAnswer(3 * time.Second)
		}},
		{name: "creates within the lag of the owner's deletionTimestamp (create-after-deletion)", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.deliver(h.terminate(rs))
			h.createAll(rs, 3)
		}},
		{name: "creates long after the owner's deletionTimestamp (mutant R29)", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.terminate(rs))
			h.wait(3 * time.Second)
			h.deliver(h.terminate(pods[0]))
			h.create(rs)
		}},
		{name: "deletes the excess, then waits", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.delete(pods[1]).answered(200)
			h.deliver(h.terminate(pods[0]))
			h.deliver(h.scale("web", 0))
			h.deliver(h.terminate(pods[1]))
			h.delete(pods[2]).answered(200)
		}},
		{name: "deletes more before it observes the first ones", want: Fail, evidence: "sent a delete before it had observed its earlier creates and deletes", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.delete(pods[1]).answered(200)
			h.deliver(h.scale("web", 0))
			h.delete(pods[2])
		}},
		{name: "deletes a pod again before it observes the first delete", want: Fail, evidence: "again before it observed", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.delete(pods[0])
		}},
		{name: "deletes a pod again after the first delete failed", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 2))
			h.delete(pods[0]).answered(500)
			h.delete(pods[0]).lost()
			h.delete(pods[0]).answered(404)
		}},
		{name: "creates before it observes its deletes", want: Fail, evidence: "2 earlier deletes not yet observed", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.delete(pods[1]).answered(200)
			h.deliver(h.scale("web", 3))
			h.create(rs)
		}},
		{name: "a list shows that a deleted pod is gone", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.running(rs, 3)
			h.deliver(h.scale("web", 2))
			h.delete(pods[0]).answered(200)
			h.commit(history.Deleted, *pods[0])
			h.list(objects.PodResource)
			h.deliver(h.scale("web", 3))
			h.create(rs)
		}},
		{name: "a streaming list is incomplete", want: Fail, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.createAll(rs, 1)
			h.watch(objects.PodResource, "sendInitialEvents=true")
			h.deliver(pods...)
			h.deliver(h.scale("web", 2))
			h.create(rs)
		}},
		{name: "a streaming list is complete", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.createAll(rs, 1)
			h.watch(objects.PodResource, "sendInitialEvents=true")
			h.deliver(pods...)
			h.bookmark(objects.PodResource, true)
			h.deliver(h.scale("web", 2))
			h.create(rs)
		}},
		{name: "a new owner with the same name", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			h.createAll(rs, 2)
			h.deliverGone(h.commit(history.Deleted, *rs))
			recreated := *rs
			recreated.UID = "web-again-uid"
			h.deliver(h.commit(history.Added, recreated))
			h.createAll(&recreated, 2)
		}},
		{name: "deletes an adopted pod before it observes the adoption", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.running(rs, 1)
			orphan := h.pod(nil, "web")
			h.deliver(orphan)
			h.readLive(rs)
			h.adopt(orphan, rs).answered(200)
			h.delete(orphan).answered(200)
		}},
	})
}
