package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// emit records that the process creates an event about an object.
func (h *historyBuilder) emit(kind string, about *history.Object, eventType, reason, message string) *requestStep {
	return h.request(history.Request{Verb: "create", Resource: "events", Namespace: namespace, Object: &history.Object{
		Ref: history.Ref{Namespace: namespace, Name: about.Name + ".1"},
		Body: encoded(fields{
			"involvedObject": fields{"kind": kind, "name": about.Name, "uid": about.UID}, "type": eventType, "reason": reason, "message": message,
		}),
	}})
}

func TestEventsAboutPods(t *testing.T) {
	// created returns a ReplicaSet for which the process has created the pod web-1.
	created := func(h *historyBuilder) *history.Object {
		rs := deliveredReplicaSet(h, 1)
		h.deliver(succeed(h.create(rs))...)
		return rs
	}
	runTestCases(t, "events", []testCase{
		{name: "reports a created pod", want: Pass, build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, created(h), "Normal", "SuccessfulCreate", "Created pod: web-1")
		}},
		{name: "reports a created pod in a combined event", want: Pass, build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, created(h), "Normal", "SuccessfulCreate", "(combined from similar events): Created pod: web-1")
		}},
		{name: "reports a created pod a minute later", want: Pass, build: func(h *historyBuilder) {
			rs := created(h)
			h.wait(time.Minute)
			h.emit(kube.ReplicaSet, rs, "Normal", "SuccessfulCreate", "Created pod: web-1")
		}},
		{name: "reports a pod that it did not create", want: Fail, evidence: `emitted the event SuccessfulCreate (Normal) about ReplicaSet ns/web: "Created pod: web-9"`, build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, created(h), "Normal", "SuccessfulCreate", "Created pod: web-9")
		}},
		{name: "reports a created pod as a warning", want: Fail, evidence: `emitted the event SuccessfulCreate (Warning)`, build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, created(h), "Warning", "SuccessfulCreate", "Created pod: web-1")
		}},
		{name: "reports a created pod whose create failed", want: Fail, evidence: `about ReplicaSet ns/web: "Created pod: web-1"`, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.create(rs).answered(500)
			h.emit(kube.ReplicaSet, rs, "Normal", "SuccessfulCreate", "Created pod: web-1")
		}},
		{name: "reports the pod of another ReplicaSet", want: Fail, evidence: `about ReplicaSet ns/web: "Created pod: web-1"`, build: func(h *historyBuilder) {
			other := *created(h)
			other.UID = "other"
			h.emit(kube.ReplicaSet, &other, "Normal", "SuccessfulCreate", "Created pod: web-1")
		}},
		{name: "reports a deleted pod", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.delete(h.running(rs, 2)[0]).answered(200)
			h.emit(kube.ReplicaSet, rs, "Normal", "SuccessfulDelete", "Deleted pod: web-1")
		}},
		{name: "reports a pod that was gone", want: Fail, evidence: `"Deleted pod: web-1"`, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.delete(h.running(rs, 2)[0]).answered(404)
			h.emit(kube.ReplicaSet, rs, "Normal", "SuccessfulDelete", "Deleted pod: web-1")
		}},
		{name: "another reason", want: NotExercised, build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, created(h), "Warning", "FailedCreate", "Error creating: no")
		}},
		{name: "an object of another kind", want: NotExercised, build: func(h *historyBuilder) {
			h.emit("Job", created(h), "Normal", "SuccessfulCreate", "Created pod: web-9")
		}},
	})
}

func TestEventsAboutScaling(t *testing.T) {
	// scaled returns a Deployment whose old ReplicaSet web-v1 the process has scaled from 10 to 8.
	scaled := func(h *historyBuilder) *history.Object {
		d := h.deployment("web", 10, rollingUpdate(5, 5))
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
		h.resize(h.find("web-v1"), 8).applyAndAnswer()
		return d
	}
	const reason = "ScalingReplicaSet"
	runTestCases(t, "events", []testCase{
		{name: "reports a scaling", want: Pass, build: func(h *historyBuilder) {
			h.emit(kube.Deployment, scaled(h), "Normal", reason, "Scaled down replica set web-v1 from 10 to 8")
		}},
		{name: "reports a scaling after an update of the same ReplicaSet", want: Pass, build: func(h *historyBuilder) {
			d := scaled(h)
			h.deliver(h.find("web-v1"))
			h.resize(h.find("web-v1"), 8).applyAndAnswer()
			h.emit(kube.Deployment, d, "Normal", reason, "Scaled down replica set web-v1 from 10 to 8")
		}},
		{name: "reports a created ReplicaSet", want: Pass, build: func(h *historyBuilder) {
			d := h.deployment("web", 10, rollingUpdate(5, 5))
			h.createReplicaSet("web", "v1", 3).applyAndAnswer()
			h.emit(kube.Deployment, d, "Normal", reason, "Scaled up replica set web-v1 from 0 to 3")
		}},
		{name: "reports a scaling of a ReplicaSet that is not in its cache yet", want: Pass, build: func(h *historyBuilder) {
			d := h.deployment("web", 10, rollingUpdate(5, 5))
			set := h.createReplicaSet("web", "v1", 3).applyAndAnswer()
			h.resize(set, 5).applyAndAnswer()
			h.emit(kube.Deployment, d, "Normal", reason, "Scaled up replica set web-v1 from 3 to 5")
		}},
		{name: "reports another former number", want: Fail, evidence: `"Scaled down replica set web-v1 from 9 to 8"`, build: func(h *historyBuilder) {
			h.emit(kube.Deployment, scaled(h), "Normal", reason, "Scaled down replica set web-v1 from 9 to 8")
		}},
		{name: "reports another new number", want: Fail, evidence: `"Scaled down replica set web-v1 from 10 to 7"`, build: func(h *historyBuilder) {
			h.emit(kube.Deployment, scaled(h), "Normal", reason, "Scaled down replica set web-v1 from 10 to 7")
		}},
		{name: "reports another ReplicaSet", want: Fail, evidence: `"Scaled down replica set web-v2 from 10 to 8"`, build: func(h *historyBuilder) {
			h.emit(kube.Deployment, scaled(h), "Normal", reason, "Scaled down replica set web-v2 from 10 to 8")
		}},
		{name: "reports the wrong direction", want: Fail, evidence: `"Scaled up replica set web-v1 from 10 to 8"`, build: func(h *historyBuilder) {
			h.emit(kube.Deployment, scaled(h), "Normal", reason, "Scaled up replica set web-v1 from 10 to 8")
		}},
		{name: "has another message", want: Fail, evidence: `"web-v1 has 8 replicas"`, build: func(h *historyBuilder) {
			h.emit(kube.Deployment, scaled(h), "Normal", reason, "web-v1 has 8 replicas")
		}},
	})
}
