package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestStatus(t *testing.T) {
	// renewed waits, then delivers a new version of the ReplicaSet, and returns this version.
	// Earlier states of the pods are then no longer recent.
	renewed := func(h *historyBuilder) *history.Object {
		h.wait(3 * time.Second)
		rs := h.revise("web", "status", nil)
		h.deliver(rs)
		return rs
	}
	// threePods delivers a ReplicaSet with three replicas and three pods.
	threePods := func(h *historyBuilder) *history.Object {
		h.running(deliveredReplicaSet(h, 3), 3)
		return renewed(h)
	}
	counts := func(replicas, ready int) fields {
		return fields{
			"replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": 1,
		}
	}
	failing := func(status fields) fields {
		status["conditions"] = []any{fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "lastTransitionTime": "2000-01-01T00:00:00Z"}}
		return status
	}
	runTestCases(t, "status", []testCase{
		{name: "counts as in the cache", want: Pass, build: func(h *historyBuilder) {
			h.updateStatus(threePods(h), counts(3, 3)).answered(200)
		}},
		{name: "one pod too few", want: Fail, evidence: "wrote status.replicas 2", build: func(h *historyBuilder) {
			h.updateStatus(threePods(h), counts(2, 2)).answered(200)
		}},
		{name: "negative status.replicas", want: Fail, evidence: "wrote status.replicas -1", build: func(h *historyBuilder) {
			h.updateStatus(deliveredReplicaSet(h, 0), counts(-1, 0)).answered(422)
		}},
		{name: "counts a pod as ready that is not", want: Fail, evidence: "wrote status.readyReplicas 3", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.running(rs, 2)
			unready := *h.pod(rs, "web")
			unready.Body = podBody("Running", false)
			h.deliver(h.commit(history.Modified, unready))
			h.updateStatus(renewed(h), counts(3, 3)).answered(200)
		}},
		{name: "a create failed, with ReplicaFailure", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).answered(500)
			h.updateStatus(rs, failing(counts(0, 0))).answered(200)
		}},
		{name: "a create failed, without ReplicaFailure", want: Fail, evidence: "without condition ReplicaFailure", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).answered(500)
			h.updateStatus(rs, counts(0, 0)).answered(200)
		}},
		{name: "a delete failed, without ReplicaFailure", want: Fail, evidence: "without condition ReplicaFailure", build: func(h *historyBuilder) {
			pods := h.running(deliveredReplicaSet(h, 1), 2)
			h.delete(pods[0]).answered(500)
			h.updateStatus(renewed(h), counts(2, 2)).answered(200)
		}},
		{name: "a delete of a pod failed that may belong to another owner", want: Pass, build: func(h *historyBuilder) {
			rs, other := deliveredReplicaSet(h, 1), h.replicaSet("other", 0)
			pods := h.running(rs, 2)
			h.deliver(other)
			handed := *pods[0]
			handed.Owners, handed.Labels = controlledBy(other), map[string]string{"app": "other"}
			h.deliver(h.commit(history.Modified, handed))
			h.delete(pods[0]).answered(500)
			h.updateStatus(other, counts(1, 1)).answered(200)
		}},
		{name: "pods created after ReplicaFailure was reported", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).answered(500)
			h.updateStatus(rs, failing(counts(0, 0))).answered(200)
			h.deliver(succeed(h.create(rs))...)
			h.updateStatus(rs, counts(1, 1)).answered(200)
		}},
		{name: "ReplicaFailure is already in the status", want: notFailed, build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			rs := h.revise("web", "status", failing(counts(0, 0)))
			h.deliver(rs)
			h.create(rs).answered(500)
			h.updateStatus(rs, counts(0, 0)).answered(200)
		}},
		{name: "a create rejected in a terminating namespace (terminating-namespace-creates)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).answered(403)
			h.updateStatus(rs, counts(0, 0)).answered(200)
		}},
		{name: "a pod has just arrived", want: Pass, build: func(h *historyBuilder) {
			rs := threePods(h)
			h.deliver(h.pod(rs, "web"))
			h.updateStatus(rs, counts(3, 3)).answered(200)
		}},
		{name: "a pod arrived before the last status write", want: Fail, evidence: "wrote status.replicas 3", build: func(h *historyBuilder) {
			rs := threePods(h)
			h.deliver(h.pod(rs, "web"))
			h.updateStatus(rs, counts(4, 4)).answered(200)
			h.updateStatus(renewed(h), counts(3, 3)).answered(200)
		}},
		{name: "a pod arrived long ago, but an earlier call may have taken that long", want: Pass, build: func(h *historyBuilder) {
			rs := threePods(h)
			h.deliver(h.pod(rs, "web"))
			h.wait(time.Minute)
			h.updateStatus(rs, counts(3, 3)).answered(200)
		}},
		{name: "from a replaced version, which the API server rejects", want: notFailed, build: func(h *historyBuilder) {
			rs := threePods(h)
			h.deliver(h.pod(rs, "web"))
			renewed(h)
			h.updateStatus(rs, counts(3, 3)).answered(409)
		}},
		{name: "counts an adopted orphan before it observes the adoption (overlapping-selectors)", want: notFailed, build: func(h *historyBuilder) {
			rs := threePods(h)
			orphan := h.pod(nil, "web")
			h.deliver(orphan)
			h.readLive(rs)
			h.adopt(orphan, rs).answered(200)
			h.updateStatus(rs, counts(4, 4)).answered(200)
		}},
		{name: "a list that is only partly in the cache", want: Pass, build: func(h *historyBuilder) {
			rs := threePods(h)
			h.terminate(h.find("web-1"))
			h.pod(rs, "web")
			h.list(objects.PodResource)
			h.updateStatus(rs, counts(4, 4)).answered(200)
		}},
	})
}

func TestStatusGeneration(t *testing.T) {
	generation := func(g int) fields { return fields{"observedGeneration": g, "replicas": 0} }
	runTestCases(t, "status", []testCase{
		{name: "observedGeneration of a version that is not in the cache", want: Fail, evidence: "wrote status.observedGeneration 2", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 0)
			h.scale("web", 1)
			h.updateStatus(rs, generation(2)).answered(200)
		}},
		{name: "observedGeneration of a live read", want: Fail, evidence: "ReplicaSet ns/web: subject-0 wrote status.observedGeneration 2", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 0)
			h.scale("web", 1)
			h.wait(3 * time.Second)
			h.readLive(h.find("web"))
			h.updateStatus(h.find("web"), generation(2)).answered(200)
		}},
		{name: "observedGeneration of an owner that has just appeared", want: notFailed, build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 0)
			h.scale("web", 1)
			h.readLive(h.find("web"))
			h.updateStatus(h.find("web"), generation(2)).answered(200)
		}},
		{name: "observedGeneration of the version before", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 0)
			h.deliver(h.scale("web", 1))
			h.updateStatus(rs, generation(1)).answered(409)
		}},
		{name: "observedGeneration falls", want: Fail, evidence: "wrote status.observedGeneration 1", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 0)
			h.deliver(h.scale("web", 1))
			h.updateStatus(h.find("web"), generation(2)).answered(200)
			h.wait(3 * time.Second)
			h.deliver(h.revise("web", "status", generation(2)))
			h.updateStatus(h.find("web"), generation(1)).answered(200)
		}},
		{name: "a new leader with an older cached version (observed-generation-order)", want: Pass, build: func(h *historyBuilder) {
			old := deliveredReplicaSet(h, 0)
			h.deliver(h.scale("web", 1))
			h.updateStatus(h.find("web"), generation(2)).answered(200)
			h.begin("subject-1")
			h.listPart(objects.PodResource, "", nil)
			h.listPart(replicaSets, "", []history.Object{*old})
			h.updateStatus(old, generation(1)).answered(409)
		}},
	})
}

func TestStatusAvailability(t *testing.T) {
	// fresh delivers a ReplicaSet with minReadySeconds 5, and a pod that became ready at second
	// 10 of the history.
	fresh := func(h *historyBuilder) *history.Object {
		h.replicaSet("web", 1)
		rs := h.revise("web", "spec", fields{"minReadySeconds": 5})
		h.deliver(rs)
		p := *h.pod(rs, "web")
		p.Body = fmt.Appendf(nil, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`,
			time.Unix(1e9+10, 0).UTC().Format(time.RFC3339))
		h.at = 10*time.Second + 900*time.Millisecond
		h.deliver(h.commit(history.Modified, p))
		return rs
	}
	available := fields{"replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 2}
	runTestCases(t, "status", []testCase{
		{name: "available too early", want: Fail, evidence: "wrote status.availableReplicas 1", build: func(h *historyBuilder) {
			rs := fresh(h)
			h.wait(3 * time.Second)
			h.updateStatus(rs, available).answered(200)
		}},
		{name: "available early by a fraction of a second (whole-second-timestamps)", want: Pass, build: func(h *historyBuilder) {
			rs := fresh(h)
			h.at = 15 * time.Second
			h.updateStatus(rs, available).answered(200)
		}},
	})
}

func TestReplicaFailure(t *testing.T) {
	failing := fields{
		"replicas": 0, "observedGeneration": 1, "conditions": []any{fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "lastTransitionTime": "2000-01-01T00:00:00Z"}},
	}
	// since returns a status in which ReplicaFailure has the given status and lastTransitionTime.
	since := func(status string, transition any) fields {
		return fields{"replicas": 0, "observedGeneration": 1, "conditions": []any{
			fields{"type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "lastTransitionTime": transition},
		}}
	}
	// failed delivers a ReplicaSet that has had the condition ReplicaFailure for three seconds.
	failed := func(h *historyBuilder) *history.Object {
		deliveredReplicaSet(h, 1)
		h.deliver(h.revise("web", "status", failing))
		h.wait(3 * time.Second)
		return h.find("web")
	}
	runTestCases(t, "status", []testCase{
		{name: "ReplicaFailure after a failed create", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).answered(403)
			h.updateStatus(rs, failing).answered(200)
		}},
		{name: "reason FailedCreate after a failed delete", want: Fail, evidence: "wrote condition ReplicaFailure=True (FailedCreate)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 0)
			h.delete(h.running(rs, 1)[0]).answered(500)
			h.updateStatus(rs, fields{
				"replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1, "conditions": failing["conditions"],
			}).answered(200)
		}},
		{name: "ReplicaFailure without a recorded failure", want: Pass, build: func(h *historyBuilder) {
			h.updateStatus(deliveredReplicaSet(h, 1), failing).answered(200)
		}},
		{name: "ReplicaFailure after a delete of a pod that was already gone (mutant R17)", want: Fail, evidence: "wrote condition ReplicaFailure", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 0)
			pods := h.running(rs, 1)
			h.delete(pods[0]).answered(404)
			h.deliverGone(pods[0])
			h.updateStatus(rs, failing).answered(200)
		}},
		{name: "ReplicaFailure is already in the status (replica-failure-message)", want: Pass, build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			h.deliver(h.revise("web", "status", failing))
			h.wait(3 * time.Second)
			h.updateStatus(h.find("web"), failing).answered(200)
		}},
		{name: "ReplicaFailure without a time", want: Fail, evidence: "with lastTransitionTime null", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).answered(403)
			h.updateStatus(rs, since("True", nil)).answered(200)
		}},
		{name: "ReplicaFailure with another time", want: Fail, evidence: "with lastTransitionTime 2000-01-01T00:00:05Z", build: func(h *historyBuilder) {
			h.updateStatus(failed(h), since("True", "2000-01-01T00:00:05Z")).answered(200)
		}},
		{name: "ReplicaFailure=False with another time", want: Pass, build: func(h *historyBuilder) {
			h.updateStatus(failed(h), since("False", "2000-01-01T00:00:05Z")).answered(200)
		}},
	})
}
