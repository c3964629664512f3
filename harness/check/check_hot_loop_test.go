package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestHotLoop(t *testing.T) {
	get := history.Request{Verb: "get", Resource: widgets, Namespace: namespace, Name: "w"}
	// repeat sends a request n times at equal intervals. The parameter within is the whole
	// duration.
	repeat := func(h *historyBuilder, r history.Request, n int, within time.Duration) {
		for range n {
			h.request(r).answered(200)
			h.wait(within / time.Duration(n))
		}
	}
	const second = time.Second
	for _, test := range []testCase{
		{name: "get of one object", want: Fail, evidence: "subject-0 sent get widgets.example.com ns/w 51 times in 2.6s; nothing had changed for 3s", build: func(h *historyBuilder) {
			h.wait(3 * second)
			repeat(h, get, 60, 3*second)
		}},
		{name: "list of a whole kind", want: Fail, evidence: "sent list configmaps", build: func(h *historyBuilder) {
			h.wait(3 * second)
			repeat(h, history.Request{Verb: "list", Resource: configMaps, Namespace: namespace}, 60, second)
		}},
		{name: "update that changes nothing", want: Fail, evidence: "sent update widgets.example.com ns/w", build: func(h *historyBuilder) {
			h.wait(3 * second)
			repeat(h, history.Request{Verb: "update", Subresource: "status", Resource: widgets, Namespace: namespace, Name: "w"}, 60, second)
		}},
		{name: "the loop began at once", want: Fail, evidence: "nothing had changed for 2", build: func(h *historyBuilder) {
			repeat(h, get, 100, 4*second)
		}},
		{name: "leases and events change", want: Fail, evidence: "51 times", build: func(h *historyBuilder) {
			h.wait(3 * second)
			repeat(h, get, 30, second)
			h.commit(history.Added, objectOf("events", "e", `{}`))
			h.commit(history.Added, objectOf("leases.coordination.k8s.io", "l", `{}`))
			repeat(h, get, 30, second)
		}},
		{name: "fewer requests a second", want: Pass, build: func(h *historyBuilder) {
			h.wait(3 * second)
			repeat(h, get, 200, 30*second)
		}},
		{name: "back-off right after a change", want: notFailed, build: func(h *historyBuilder) {
			repeat(h, get, 90, second)
		}},
		{name: "objects change", want: Pass, build: func(h *historyBuilder) {
			for i := range 10 {
				h.wait(3 * second)
				repeat(h, get, 30, second)
				h.revise("w", "spec", fields{"x": i})
			}
		}},
		{name: "different objects and queries", want: Pass, build: func(h *historyBuilder) {
			h.wait(3 * second)
			for i := range 100 {
				name := string(rune('0'+i%10)) + string(rune('0'+i/10))
				h.request(history.Request{Verb: "get", Resource: widgets, Namespace: namespace, Name: name}).answered(404)
				h.request(history.Request{Verb: "list", Resource: widgets, Namespace: namespace, Query: "labelSelector=a%3D" + name}).answered(200)
			}
		}},
		{name: "creates with generateName", want: NotExercised, build: func(h *historyBuilder) {
			h.wait(3 * second)
			pod := history.Object{Ref: history.Ref{Resource: "pods", Namespace: namespace}, GenerateName: "w-"}
			repeat(h, history.Request{Verb: "create", Resource: "pods", Namespace: namespace, Object: &pod}, 10, 3*second)
		}},
		{name: "leases, events and reviews", want: NotExercised, build: func(h *historyBuilder) {
			h.wait(3 * second)
			repeat(h, history.Request{Verb: "get", Resource: "leases.coordination.k8s.io", Namespace: namespace, Name: "l"}, 60, second)
			repeat(h, history.Request{Verb: "create", Resource: "subjectaccessreviews.authorization.k8s.io"}, 60, second)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			h.add(objectOf(widgets, "w", `{"spec":{}}`))
			test.build(h)
			test.verify(t, h, genericSettings(widgetController), "hot-loop")
		})
	}
}
