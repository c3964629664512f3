package check

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// claimOf returns a PersistentVolumeClaim that the given Widget controls. The claim has the
// given UID.
func claimOf(o *history.Object, uid types.UID) history.Object {
	claim := controlled(objectOf(claims, "w-data", `{"spec":{}}`), "Widget", o)
	claim.UID = uid
	return claim
}

// revised commits a new version of a Widget with the given body and the next generation.
func (h *historyBuilder) revised(o *history.Object, body string) *history.Object {
	changed := withBody(o, body)
	changed.Generation++
	return h.commit(history.Modified, changed)
}

// grownWidget commits a Widget to which a user adds storage. The process receives the change and
// creates a PersistentVolumeClaim. The results are the Widget before and after the change, and
// the claim.
func grownWidget(h *historyBuilder) (before, after, claim *history.Object) {
	before = h.add(objectOf(widgets, "w", `{"spec":{}}`))
	after = h.revised(before, `{"spec":{"storage":"1Gi"}}`)
	h.deliver(after)
	return before, after, h.apply("create", "", claimOf(after, "first"))
}

// startStale starts a process that gets an outdated list of Widgets. The list contains only the
// given version of one Widget. The parameter name is the name of the process.
func (h *historyBuilder) startStale(o *history.Object, name string) {
	h.begin(name)
	for _, resource := range h.resources {
		if resource != widgets {
			h.list(resource)
		} else {
			step := h.request(history.Request{Verb: "list", Resource: widgets})
			step.answered(200)
			h.append(history.Record{List: &history.List{ID: step.request.ID, Subject: name, Resource: widgets, Version: o.Version, Items: []history.Object{*o}}})
		}
		h.watch(resource, "")
	}
}

// deleted records that the process deletes an object, and that it receives the event of the
// deletion.
func (h *historyBuilder) deleted(o *history.Object) {
	h.send("delete", "", o).answered(200)
	h.commit(history.Deleted, *o)
	h.deliverGone(o)
}

func TestNoStaleDelete(t *testing.T) {
	for _, test := range []testCase{
		{name: "a restarted process deletes the claim of an outdated Widget", want: Fail, evidence: "subject-0 deleted persistentvolumeclaims ns/w-data, but had received widgets.example.com ns/w only up to version 101; a process of the subject had received version 102 before the object was created; later, the object was created again", build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.startStale(before, "subject-0")
			h.deleted(claim)
			h.deliver(after)
			h.apply("create", "", claimOf(after, "again"))
		}},
		{name: "the claim has a label with the name of the Widget", want: Fail, evidence: "deleted persistentvolumeclaims ns/w-data", build: func(h *historyBuilder) {
			before, after, _ := grownWidget(h)
			claim := *h.find("w-data")
			claim.Owners, claim.Labels = nil, map[string]string{"app": "w"}
			h.deliver(h.commit(history.Modified, claim))
			h.startStale(before, "subject-1")
			h.deleted(&claim)
			h.commit(history.Added, claimOf(after, "again")) // another client creates the claim again
		}},
		{name: "a Widget that the list does not contain yet", want: Fail, evidence: "deleted persistentvolumeclaims ns/w-data", build: func(h *historyBuilder) {
			other := h.add(objectOf(widgets, "other", `{"spec":{}}`))
			_, after, claim := grownWidget(h)
			h.startStale(other, "subject-0")
			h.deleted(claim)
			h.deliver(after)
			h.apply("create", "", claimOf(after, "again"))
		}},
		{name: "a restarted process scales a StatefulSet down", want: Fail, evidence: "subject-0 scaled down statefulsets.apps ns/web, but had received ", build: func(h *historyBuilder) {
			before, after, _ := grownWidget(h)
			set := h.apply("create", "", controlled(objectOf(statefulSets, "web", `{"spec":{"replicas":3}}`), "Widget", after))
			h.startStale(before, "subject-0")
			lower := h.apply("update", "", withBody(set, `{"spec":{"replicas":1}}`))
			h.deliver(after)
			h.apply("update", "", withBody(lower, `{"spec":{"replicas":3}}`))
		}},
		{name: "a delete without a UID precondition reaches a namesake", want: Fail, evidence: "with UID again; the process had received only an older object with this name, UID first", build: func(h *historyBuilder) {
			_, after, claim := grownWidget(h)
			h.commit(history.Deleted, *claim)
			h.commit(history.Added, claimOf(after, "again"))
			h.send("delete", "", claim).answered(200)
		}},
		{name: "a patch removes the finalizer of a namesake", want: Fail, evidence: "subject-0 removed a finalizer of widgets.example.com ns/w with UID other", build: func(h *historyBuilder) {
			read := h.add(withFinalizers(h.add(objectOf(widgets, "w", `{}`)), "example.com/own"))
			h.commit(history.Deleted, *read)
			namesake := *read
			namesake.UID = "other"
			h.commit(history.Added, namesake)
			h.patched(mergePatch, `{"metadata":{"finalizers":null}}`, withFinalizers(&namesake))
		}},

		{name: "a patch removes the finalizer of the object that the process has read", want: Pass, build: func(h *historyBuilder) {
			read := h.add(withFinalizers(h.add(objectOf(widgets, "w", `{}`)), "example.com/own"))
			h.patched(mergePatch, `{"metadata":{"finalizers":null}}`, withFinalizers(read))
		}},
		{name: "a patch of a namesake keeps its finalizers", want: NotExercised, build: func(h *historyBuilder) {
			read := h.add(withFinalizers(h.add(objectOf(widgets, "w", `{}`)), "example.com/own"))
			h.commit(history.Deleted, *read)
			namesake := *read
			namesake.UID = "other"
			h.commit(history.Added, namesake)
			h.patched(mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, namesake)
		}},
		{name: "the process has received the change", want: Pass, build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.startStale(before, "subject-0")
			h.deliver(after)
			h.deleted(claim)
			h.apply("create", "", claimOf(after, "again"))
		}},
		{name: "the process has read the Widget from the API server", want: Pass, build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.startStale(before, "subject-0")
			h.readLive(after)
			h.deleted(claim)
			h.apply("create", "", claimOf(after, "again"))
		}},
		{name: "nothing creates the claim again", want: Pass, build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.startStale(before, "subject-0")
			h.deleted(claim)
			h.deliver(after)
		}},
		{name: "the Widget changes before the claim is created again", want: Pass, build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.startStale(before, "subject-0")
			h.deleted(claim)
			after = h.revised(after, `{"spec":{"storage":"2Gi"}}`)
			h.deliver(after)
			h.apply("create", "", claimOf(after, "again"))
		}},
		{name: "the claim is older than the change", want: Pass, build: func(h *historyBuilder) {
			before := h.add(objectOf(widgets, "w", `{"spec":{"storage":"1Gi"}}`))
			claim := h.apply("create", "", claimOf(before, "first"))
			smaller := h.revised(before, `{"spec":{}}`)
			h.deliver(smaller)
			h.revised(smaller, `{"spec":{"storage":"1Gi"}}`) // the process does not receive this version
			h.deleted(claim)
			h.deliver(h.find("w"))
			h.apply("create", "", claimOf(before, "again"))
		}},
		{name: "no process had received the change", want: Pass, build: func(h *historyBuilder) {
			before := h.add(objectOf(widgets, "w", `{"spec":{}}`))
			after := h.revised(before, `{"spec":{"storage":"1Gi"}}`)
			claim := h.commit(history.Added, claimOf(after, "first"))
			h.deliver(claim)
			h.deleted(claim)
			h.deliver(after)
			h.apply("create", "", claimOf(after, "again"))
		}},
		{name: "the process that created the claim deletes it", want: Pass, build: func(h *historyBuilder) {
			before := h.add(objectOf(widgets, "w", `{"spec":{}}`))
			after := h.revised(before, `{"spec":{"storage":"1Gi"}}`)
			h.deliver(after)
			h.startStale(before, "subject-1")
			claim := h.apply("create", "", claimOf(after, "first"))
			h.deleted(claim)
			h.deliver(after)
			h.apply("create", "", claimOf(after, "again"))
		}},
		{name: "a user creates the claim again", want: Pass, build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.startStale(before, "subject-0")
			h.deleted(claim)
			h.append(history.Record{Step: &history.Step{Event: history.StepBegun, Object: &claim.Ref}})
			h.commit(history.Added, claimOf(after, "again"))
		}},
		{name: "the Widget is being deleted", want: Pass, build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.terminate(after)
			h.startStale(before, "subject-0")
			h.deleted(claim)
			h.commit(history.Added, claimOf(after, "again"))
		}},
		{name: "a UID precondition protects the namesake", want: NotExercised, build: func(h *historyBuilder) {
			_, after, claim := grownWidget(h)
			h.commit(history.Deleted, *claim)
			h.commit(history.Added, claimOf(after, "again"))
			h.request(history.Request{Verb: "delete", Resource: claims, Namespace: namespace, Name: claim.Name, PreconditionUID: claim.UID}).answered(409)
		}},
		{name: "the process has received the namesake", want: Pass, build: func(h *historyBuilder) {
			_, after, claim := grownWidget(h)
			h.commit(history.Deleted, *claim)
			h.add(claimOf(after, "again"))
			h.send("delete", "", claim).answered(200)
		}},
		{name: "the API server refuses the delete", want: NotExercised, build: func(h *historyBuilder) {
			before, after, claim := grownWidget(h)
			h.startStale(before, "subject-0")
			h.send("delete", "", claim).answered(403)
			h.commit(history.Deleted, *claim)
			h.commit(history.Added, claimOf(after, "again"))
		}},
		{name: "a delete of a Service", want: NotExercised, build: func(h *historyBuilder) {
			h.send("delete", "", h.add(objectOf("services", "s", `{}`))).answered(200)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, claims, statefulSets, "services")
			h.wait(time.Second)
			test.build(h)
			test.verify(t, h, genericSettings(widgetController), "no-stale-delete")
		})
	}
}
