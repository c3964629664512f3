package check

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// finalized commits an object with the given name, and records that the process adds a
// finalizer. It returns the version with the finalizer.
func finalized(h *historyBuilder, name string) *history.Object {
	o := *h.add(objectOf(widgets, name, `{"spec":{}}`))
	o.Finalizers = []string{"example.com/clean-up"}
	return h.apply("update", "", o)
}

// createdWithFinalizer records that the process creates an object with a finalizer, and returns the object.
func createdWithFinalizer(h *historyBuilder, name string) *history.Object {
	o := objectOf(widgets, name, `{"spec":{}}`)
	o.Finalizers = []string{"example.com/clean-up"}
	step := h.request(history.Request{Verb: "create", Resource: widgets, Namespace: namespace, Name: name, Object: &o})
	step.made = h.commit(history.Added, o)
	return step.answered(201).made
}

// settle starts the phase settle, and waits for as long as the cluster may take to converge.
func (h *historyBuilder) settle() {
	h.phase(history.PhaseSettle)
	h.wait(testSettings.Within)
}

func TestDeletionCompletes(t *testing.T) {
	for _, test := range []testCase{
		{name: "the process removes its finalizer", want: Pass, build: func(h *historyBuilder) {
			o := *h.terminate(finalized(h, "w"))
			h.deliver(&o)
			o.Finalizers = nil
			h.commit(history.Deleted, *h.apply("update", "", o))
			h.settle()
		}},
		{name: "the finalizer stays", want: Fail, evidence: "widgets.example.com ns/w has been terminating for 10s and still has the finalizer example.com/clean-up", build: func(h *historyBuilder) {
			h.terminate(finalized(h, "w"))
			h.settle()
		}},
		{name: "a patch added the finalizer that stays", want: Fail, evidence: "still has the finalizer example.com/clean-up", build: func(h *historyBuilder) {
			o := *h.add(objectOf(widgets, "w", `{"spec":{}}`))
			step := h.request(history.Request{Verb: "patch", Resource: widgets, Namespace: namespace, Name: "w", Patch: []byte(`{"metadata":{"finalizers":["example.com/clean-up"]}}`)})
			o.Finalizers = []string{"example.com/clean-up"}
			step.made = h.commit(history.Modified, o)
			h.terminate(step.answered(200).made)
			h.settle()
		}},
		{name: "a finalizer stays that the process only set in an object that it created", want: NotExercised, build: func(h *historyBuilder) {
			h.terminate(createdWithFinalizer(h, "w"))
			h.settle()
		}},
		{name: "a finalizer stays that the process set in two created objects and removed from one", want: Fail, evidence: "widgets.example.com ns/other", build: func(h *historyBuilder) {
			o := *createdWithFinalizer(h, "w")
			createdWithFinalizer(h, "other")
			o.Finalizers = nil
			h.apply("update", "", o)
			h.terminate(h.find("other"))
			h.settle()
		}},
		{name: "a finalizer stays that the process removed from an object that disappeared with it", want: Fail, evidence: "widgets.example.com ns/other", build: func(h *historyBuilder) {
			o := *h.terminate(createdWithFinalizer(h, "w"))
			createdWithFinalizer(h, "other")
			o.Finalizers = nil
			step := h.send("update", "", &o)
			step.made = h.commit(history.Deleted, o)
			step.answered(200)
			h.terminate(h.find("other"))
			h.settle()
		}},
		{name: "the garbage collector waits for a dependent", want: NotExercised, build: func(h *historyBuilder) {
			o := *h.add(objectOf(widgets, "w", `{"spec":{}}`))
			o.Finalizers = []string{"foregroundDeletion"}
			o = *h.add(o)
			o.Finalizers = nil
			h.apply("update", "", o)
			other := objectOf(widgets, "other", `{"spec":{}}`)
			other.Finalizers = []string{"foregroundDeletion"}
			h.terminate(h.add(other))
			h.settle()
		}},
		{name: "the finalizer of another object stays", want: Fail, evidence: "widgets.example.com ns/other", build: func(h *historyBuilder) {
			finalized(h, "w")
			other := objectOf(widgets, "other", `{"spec":{}}`)
			other.Finalizers = []string{"example.com/clean-up"}
			h.terminate(h.add(other))
			h.settle()
		}},
		{name: "the deletion began too late to judge", want: Unknown, build: func(h *historyBuilder) {
			o := finalized(h, "w")
			h.settle()
			h.terminate(o)
			h.wait(testSettings.Within / 2)
		}},
		{name: "a finalizer of a user stays", want: NotExercised, build: func(h *historyBuilder) {
			o := *h.add(objectOf(widgets, "w", `{"spec":{}}`))
			o.Finalizers = []string{"example.com/user"}
			o = *h.add(o)
			h.apply("update", "status", o) // this write contains the finalizer but does not add it
			h.terminate(&o)
			h.settle()
		}},
		{name: "the finalizer was never added, because the update failed", want: NotExercised, build: func(h *historyBuilder) {
			o := *h.add(objectOf(widgets, "w", `{"spec":{}}`))
			o.Finalizers = []string{"example.com/clean-up"}
			h.send("update", "", &o).answered(409)
			h.terminate(h.add(o)) // a user added the finalizer
			h.settle()
		}},
		{name: "an object without finalizers terminates", want: NotExercised, build: func(h *historyBuilder) {
			h.terminate(h.add(objectOf(widgets, "w", `{"spec":{}}`)))
			h.settle()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			test.build(h)
			test.verify(t, h, genericSettings(widgetController), "deletion-completes")
		})
	}
}
