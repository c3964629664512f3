package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestObservedGeneration(t *testing.T) {
	// report records that the process writes the status of the object w. The parameter body
	// contains this status.
	report := func(h *historyBuilder, body string) *history.Object {
		o := *h.find("w")
		o.Body = []byte(body)
		return h.apply("update", "status", o)
	}
	// edit commits and delivers a change of the spec of the object w, which raises the
	// generation.
	edit := func(h *historyBuilder) { h.deliver(h.revise("w", "spec", fields{"x": 1})) }
	first, second, third := `{"spec":{},"status":{"observedGeneration":1}}`, `{"spec":{},"status":{"observedGeneration":2}}`, `{"spec":{},"status":{"observedGeneration":3}}`
	for _, test := range []testCase{
		{name: "each generation is reported", want: Pass, build: func(h *historyBuilder) {
			report(h, first)
			edit(h)
			report(h, second)
			h.settle()
		}},
		{name: "higher than the generation", want: Fail, evidence: "wrote observedGeneration 2 to widgets.example.com ns/w, whose generation is 1", build: func(h *historyBuilder) {
			report(h, second)
			h.settle()
		}},
		{name: "text that is a number, out of date at the end", want: Fail, evidence: "status.observedGeneration of widgets.example.com ns/w is 1, 10s after generation 2", build: func(h *historyBuilder) {
			report(h, `{"status":{"observedGeneration":"1"}}`)
			edit(h)
			h.settle()
		}},
		{name: "text that is a number, up to date at the end", want: Pass, build: func(h *historyBuilder) {
			edit(h)
			report(h, `{"status":{"observedGeneration":"2"}}`)
			h.settle()
		}},
		{name: "text that is no number", want: NotExercised, build: func(h *historyBuilder) {
			report(h, `{"status":{"observedGeneration":"5d9f7cc8b4"}}`)
			edit(h)
			h.settle()
		}},
		{name: "a condition has a higher one", want: Fail, evidence: "wrote observedGeneration 7", build: func(h *historyBuilder) {
			report(h, `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","observedGeneration":7}]}}`)
			h.settle()
		}},
		{name: "a user wrote the higher one", want: NotExercised, build: func(h *historyBuilder) {
			h.add(objectOf(configMaps, "w2", third))
		}},
		{name: "lowered although the cache is up to date", want: Fail, evidence: "lowered status.observedGeneration of widgets.example.com ns/w from 2 to 1", build: func(h *historyBuilder) {
			edit(h)
			report(h, second)
			h.wait(10 * time.Second)
			report(h, first)
			report(h, second)
		}},
		{name: "a response of an older version is late", want: notFailed, build: func(h *historyBuilder) {
			report(h, first)
			late := h.send("update", "", h.find("w"))
			late.made = h.revise("w", "spec", fields{"x": 2})
			report(h, second)
			h.wait(10 * time.Second)
			late.answered(200)
		}},
		{name: "lowered by a process with an old cache", want: notFailed, build: func(h *historyBuilder) {
			old := *h.find("w")
			edit(h)
			report(h, second)
			h.begin("subject-1")
			h.listPart(widgets, "", []history.Object{old})
			h.listPart(configMaps, "", nil)
			h.watch(widgets, "")
			h.wait(10 * time.Second)
			report(h, first)
			report(h, second)
		}},
		{name: "out of date at the end", want: Fail, evidence: "status.observedGeneration of widgets.example.com ns/w is 1, 10s after generation 2", build: func(h *historyBuilder) {
			report(h, first)
			edit(h)
			h.settle()
		}},
		{name: "edited too late to judge", want: Pass, build: func(h *historyBuilder) {
			report(h, first)
			h.settle()
			edit(h)
		}},
		{name: "a failed write", want: NotExercised, build: func(h *historyBuilder) {
			o := *h.find("w")
			o.Body = []byte(third)
			h.send("update", "status", &o).answered(409)
		}},
		{name: "fields with other types", want: NotExercised, build: func(h *historyBuilder) {
			report(h, `{"status":{"observedGeneration":"3","conditions":"none"}}`)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			h.add(objectOf(widgets, "w", `{"spec":{}}`))
			test.build(h)
			test.verify(t, h, genericSettings(widgetController), "observed-generation")
		})
	}

	for upstream, want := range map[bool]Verdict{false: Fail, true: KnownUpstream} {
		h := newHistoryBuilderOf(widgets, configMaps)
		h.add(objectOf(widgets, "w", `{"spec":{}}`))
		edit(h)
		anew := objectOf(widgets, "w", second)
		h.commit(history.Deleted, *h.find("w"))
		brief := objectOf(widgets, "w", `{"spec":{}}`) // has a lower generation than the object before
		brief.UID = "brief-uid"
		h.add(brief)
		h.commit(history.Deleted, *h.find("w"))
		anew.UID = "anew-uid"
		h.add(anew)
		report(h, second)
		settings := genericSettings(widgetController)
		settings.Upstream = upstream
		if got := verdictsWith(t, settings, h.end())["observed-generation"]; got.Verdict != want {
			t.Errorf("the generation of a deleted object, upstream %v: got %s (%s), want %s", upstream, got.Verdict, got.Reason, want)
		}
	}
}
