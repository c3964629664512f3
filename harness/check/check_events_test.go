package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
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

// eventsOfAllReasons returns creates of events, one with each reason that the check demands. The events are
// about an object of another kind, so that the check reads only the reason.
func eventsOfAllReasons() (all []history.Request) {
	for _, reason := range []string{
		podCreatedReason, podDeletedReason, scaledReason, createFailedReason, deleteFailedReason,
		setFailedReason, createEndpointsReason, updateEndpointsReason,
	} {
		for _, message := range []string{"Scaled up from 0 to 1", "Scaled up from 1 to 2"} {
			all = append(all, history.Request{Verb: "create", Resource: "events", Namespace: namespace, Object: &history.Object{
				Ref:  history.Ref{Namespace: namespace, Name: "lease." + reason},
				Body: encoded(fields{"involvedObject": fields{"kind": "Lease"}, "reason": reason, "message": message}),
			}})
		}
	}
	return all
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
			h.emit(kube.ReplicaSet, created(h), "Warning", "Other", "Error creating: no")
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

func TestEventsAboutFailures(t *testing.T) {
	// refused returns a ReplicaSet for which the API server has refused a pod.
	refused := func(h *historyBuilder) *history.Object {
		rs := deliveredReplicaSet(h, 2)
		h.create(rs).answered(500)
		return rs
	}
	newEndpoints := &history.Object{Ref: history.Ref{Name: "web"}} // upstream's event names Endpoints without a UID and a namespace
	runTestCases(t, "events", []testCase{
		{name: "reports a refused pod", want: Pass, build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, refused(h), "Warning", "FailedCreate", "Error creating: no")
		}},
		{name: "reports a refused pod as normal", want: Fail, evidence: "emitted the event FailedCreate (Normal) about ReplicaSet ns/web", build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, refused(h), "Normal", "FailedCreate", "Error creating: no")
		}},
		{name: "reports a created pod as refused", want: Fail, evidence: "emitted the event FailedCreate (Warning)", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(succeed(h.create(rs))...)
			h.emit(kube.ReplicaSet, rs, "Warning", "FailedCreate", "Error creating: no")
		}},
		{name: "reports the refused pod of another ReplicaSet", want: Fail, evidence: "FailedCreate", build: func(h *historyBuilder) {
			other := *refused(h)
			other.UID = "other"
			h.emit(kube.ReplicaSet, &other, "Warning", "FailedCreate", "Error creating: no")
		}},
		{name: "reports a refused pod after a failed connection", want: NotExercised, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.request(history.Request{Verb: "get", Resource: objects.ServiceResource, Namespace: namespace, Name: "other"}).lost()
			h.emit(kube.ReplicaSet, rs, "Warning", "FailedCreate", "Error creating: no")
		}},
		{name: "reports a refused delete", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.delete(h.running(rs, 2)[0]).answered(500)
			h.emit(kube.ReplicaSet, rs, "Warning", "FailedDelete", "Error deleting: no")
		}},
		{name: "reports a delete of a pod that does not exist", want: Fail, evidence: "FailedDelete", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.delete(h.running(rs, 2)[0]).answered(404)
			h.emit(kube.ReplicaSet, rs, "Warning", "FailedDelete", "Error deleting: not found")
		}},
		{name: "reports a refused delete of another ReplicaSet", want: Fail, evidence: "FailedDelete", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.delete(h.running(rs, 2)[0]).answered(500)
			other := *rs
			other.UID = "other"
			h.emit(kube.ReplicaSet, &other, "Warning", "FailedDelete", "Error deleting: no")
		}},
		{name: "reports a successful delete as refused", want: Fail, evidence: "FailedDelete", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.delete(h.running(rs, 2)[0]).answered(200)
			h.emit(kube.ReplicaSet, rs, "Warning", "FailedDelete", "Error deleting: no")
		}},
		{name: "reports a refused ReplicaSet", want: Pass, build: func(h *historyBuilder) {
			d := h.deployment("web", 10, rollingUpdate(5, 5))
			h.createReplicaSet("web", "v1", 3).answered(500)
			h.emit(kube.Deployment, d, "Warning", "ReplicaSetCreateError", "no")
		}},
		{name: "reports a created ReplicaSet as refused", want: Fail, evidence: "ReplicaSetCreateError", build: func(h *historyBuilder) {
			d := h.deployment("web", 10, rollingUpdate(5, 5))
			h.createReplicaSet("web", "v1", 3).applyAndAnswer()
			h.emit(kube.Deployment, d, "Warning", "ReplicaSetCreateError", "no")
		}},
		{name: "reports refused Endpoints", want: Pass, build: func(h *historyBuilder) {
			h.service("web", nil)
			h.publish("web", fields{}).answered(500)
			h.emit(kube.Endpoints, newEndpoints, "Warning", "FailedToCreateEndpoint", "no")
		}},
		{name: "reports refused Endpoints as normal", want: Fail, evidence: "the event FailedToCreateEndpoint (Normal)", build: func(h *historyBuilder) {
			h.service("web", nil)
			h.publish("web", fields{}).answered(500)
			h.emit(kube.Endpoints, newEndpoints, "Normal", "FailedToCreateEndpoint", "no")
		}},
		{name: "reports a refused pod ten minutes later", want: Fail, evidence: "FailedCreate", build: func(h *historyBuilder) {
			rs := refused(h)
			h.wait(10 * time.Minute)
			h.emit(kube.ReplicaSet, rs, "Warning", "FailedCreate", "Error creating: no")
		}},
		{name: "could not send a request before the end", want: NotExercised, build: func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, deliveredReplicaSet(h, 1), "Warning", "FailedCreate", "Error creating: client rate limiter Wait returned an error: context canceled")
		}},
		{name: "reports a create of Endpoints instead of an update", want: Fail, evidence: "FailedToUpdateEndpoint", build: func(h *historyBuilder) {
			h.service("web", nil)
			h.publish("web", fields{}).answered(500)
			h.emit(kube.Endpoints, newEndpoints, "Warning", "FailedToUpdateEndpoint", "no")
		}},
	})
}

// TestMissingEvents tests histories in which the process sends no event with one of the reasons.
func TestMissingEvents(t *testing.T) {
	// creates answers n creates of pods. It then waits for 5 s.
	creates := func(n int, answer func(h *historyBuilder, step *requestStep)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, n)
			for range n {
				answer(h, h.create(rs))
			}
			h.wait(5 * time.Second)
		}
	}
	created := func(h *historyBuilder, step *requestStep) { h.deliver(succeed(step)...) }
	after := func(build, change func(*historyBuilder)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			build(h)
			change(h)
		}
	}
	// scalings creates three Deployments with a ReplicaSet each, which the process then scales from 3 to 5.
	// Each scaling has an event with each of the given messages.
	scalings := func(messages ...string) func(*historyBuilder) {
		return func(h *historyBuilder) {
			for _, name := range []string{"a", "b", "c"} {
				d := h.deployment(name, 5, rollingUpdate(5, 5))
				set := h.createReplicaSet(name, "v1", 3).applyAndAnswer()
				h.deliver(set)
				h.resize(set, 5).applyAndAnswer()
				for _, message := range messages {
					h.emit(kube.Deployment, d, "Normal", "ScalingReplicaSet", "Scaled up replica set "+set.Name+message).answered(201)
				}
			}
			h.wait(5 * time.Second)
		}
	}
	endpoints := func(answer func(step *requestStep)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			h.service("web", nil)
			for range 3 {
				h.wait(3 * time.Second)
				answer(h.publish("web", fields{}))
			}
			h.wait(5 * time.Second)
		}
	}
	for _, test := range []testCase{
		{name: "three created pods", want: Fail, evidence: "subject-0 sent no event with the reason SuccessfulCreate, in spite of 3 responses such as that to create pods ns/", build: creates(3, created)},
		{name: "two created pods", want: notFailed, build: creates(2, created)},
		{name: "three created pods and a late event", want: Pass, build: after(creates(3, created), func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, h.find("web"), "Normal", "SuccessfulCreate", "Created pod: web-1").answered(201)
		})},
		{name: "three created pods, and a request for an event fails", want: notFailed, build: after(creates(3, created), func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, h.find("web"), "Warning", "Other", "Other").answered(500)
			h.wait(5 * time.Second)
		})},
		{name: "three created pods, and the API server refuses another event", want: Fail, evidence: "SuccessfulCreate", build: after(creates(3, created), func(h *historyBuilder) {
			h.emit(kube.ReplicaSet, h.find("web"), "Warning", "Other", "Other").answered(403)
			h.wait(5 * time.Second)
		})},
		{name: "three created pods, and connections fail", want: notFailed, build: creates(3, func(h *historyBuilder, step *requestStep) {
			created(h, step)
			h.request(history.Request{Verb: "get", Resource: objects.ServiceResource, Namespace: namespace, Name: "other"}).lost()
		})},
		{name: "three created pods before the process dies", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			h.deliver(h.createAll(rs, 3)...)
			h.restart("subject-0")
			h.wait(5 * time.Second)
		}},
		{name: "three refused pods", want: Fail, evidence: "FailedCreate", build: creates(3, func(h *historyBuilder, step *requestStep) {
			step.answered(500)
			h.wait(2 * time.Second)
		})},
		{name: "three pods in a terminating namespace", want: notFailed, build: creates(3, func(h *historyBuilder, step *requestStep) { step.refusedAsTerminating() })},
		{name: "three deleted pods", want: Fail, evidence: "SuccessfulDelete", build: func(h *historyBuilder) {
			for _, pod := range h.running(deliveredReplicaSet(h, 1), 4)[:3] {
				h.delete(pod).answered(200)
			}
			h.wait(5 * time.Second)
		}},
		{name: "three deletes of missing pods", want: notFailed, build: func(h *historyBuilder) {
			for _, pod := range h.running(deliveredReplicaSet(h, 1), 4)[:3] {
				h.delete(pod).answered(404)
			}
			h.wait(5 * time.Second)
		}},
		{name: "three refused Endpoints", want: Fail, evidence: "FailedToCreateEndpoint", build: endpoints(func(step *requestStep) { step.answered(409) })},
		{name: "three Endpoints that client-go creates again", want: notFailed, build: endpoints(func(step *requestStep) { step.deferred(503) })},
		{name: "three scaled and three new ReplicaSets", want: Fail, evidence: "ScalingReplicaSet", build: scalings()},
		{name: "three new ReplicaSets", want: Fail, evidence: "ScalingReplicaSet for a new ReplicaSet", build: scalings(" from 3 to 5")},
		{name: "three scaled ReplicaSets", want: Fail, evidence: "ScalingReplicaSet, in spite of", build: scalings(" from 0 to 3")},
		{name: "three scaled and three new ReplicaSets, and all events", want: Pass, build: scalings(" from 0 to 3", " from 3 to 5")},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(modelResources...)
			test.build(h)
			test.verify(t, h, testSettings, "events")
		})
	}
}
