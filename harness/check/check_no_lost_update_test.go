package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// The content types of patch requests, as histories name them.
const (
	mergePatch  = "application/merge-patch+json"
	jsonPatch   = "application/json-patch+json"
	serverApply = "application/apply-patch+yaml"
)

// patched records that the process sends a patch and that the API server accepts it. The
// parameter made is the object after the patch.
func (h *historyBuilder) patched(patchType, patch string, made history.Object) *history.Object {
	step := h.request(history.Request{
		Verb: "patch", Resource: made.Resource, Namespace: made.Namespace, Name: made.Name, PatchType: patchType, Patch: []byte(patch),
	})
	step.made = h.commit(history.Modified, made)
	step.answered(200)
	h.deliver(step.made)
	return step.made
}

// updated records a successful update without a resourceVersion. The parameter o is the object
// in the request.
func (h *historyBuilder) updated(o history.Object) *history.Object {
	o.Version = 0
	return h.apply("update", "", o)
}

// withBody returns a copy of an object with the given body.
func withBody(o *history.Object, body string) history.Object {
	changed := *o
	changed.Body = []byte(body)
	return changed
}

// withFinalizers returns a copy of an object with the given finalizers.
func withFinalizers(o *history.Object, finalizers ...string) history.Object {
	changed := *o
	changed.Finalizers = finalizers
	return changed
}

func TestNoLostUpdate(t *testing.T) {
	// user records that a user creates a ConfigMap with size=3, and that the process receives
	// it.
	user := func(h *historyBuilder) *history.Object {
		return h.add(objectOf(configMaps, "c", `{"data":{"size":"3"}}`))
	}
	// resized records that the user then sets size=5, but that the process does not receive this
	// change. It returns the version with size=3.
	resized := func(h *historyBuilder) *history.Object {
		read := user(h)
		h.commit(history.Modified, withBody(read, `{"data":{"size":"5"}}`))
		return read
	}
	for _, test := range []testCase{
		{name: "an update without a resourceVersion undoes a change", want: Fail, evidence: `subject-0 sent update configmaps ns/c with data.size "3", as in version 101, which the process had read, although another client had changed the value to "5" in version 102`, build: func(h *historyBuilder) {
			h.updated(withBody(resized(h), `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "an update without a resourceVersion removes a new field", want: Fail, evidence: "data.color absent, as in version 101", build: func(h *historyBuilder) {
			read := user(h)
			h.commit(history.Modified, withBody(read, `{"data":{"size":"3","color":"red"}}`))
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "a merge patch replaces the list of finalizers", want: Fail, evidence: "metadata.finalizers.example.com/other absent", build: func(h *historyBuilder) {
			read := user(h)
			h.commit(history.Modified, withFinalizers(read, "example.com/other"))
			h.patched(mergePatch, `{"metadata":{"finalizers":["example.com/own"]}}`, withFinalizers(read, "example.com/own"))
		}},
		{name: "a JSON patch removes the wrong item of a list", want: Fail, evidence: "metadata.finalizers.example.com/other absent", build: func(h *historyBuilder) {
			read := h.add(withFinalizers(user(h), "example.com/own"))
			h.commit(history.Modified, withFinalizers(read, "example.com/other", "example.com/own"))
			h.patched(jsonPatch, `[{"op":"remove","path":"/metadata/finalizers/0"}]`, *read)
		}},
		{name: "a merge patch repeats a former value", want: Fail, evidence: "data.size", build: func(h *historyBuilder) {
			h.patched(mergePatch, `{"data":{"size":"3","owner":"w"}}`, withBody(resized(h), `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "the response to the update was lost", want: Fail, evidence: "data.size", build: func(h *historyBuilder) {
			written := withBody(resized(h), `{"data":{"size":"3","owner":"w"}}`)
			written.Version = 0
			step := h.send("update", "", &written)
			made := h.commit(history.Modified, written)
			h.append(history.Record{Response: &history.Response{ID: step.request.ID, ServerCode: 200, Reached: true, Object: made}})
		}},
		{name: "the commit is recorded after the response", want: Fail, evidence: "data.size", build: func(h *historyBuilder) {
			written := withBody(resized(h), `{"data":{"size":"3","owner":"w"}}`)
			written.Version = 0
			step := h.send("update", "", &written)
			made := written
			made.Version = h.version + 1
			step.made = &made
			step.answered(200)
			h.commit(history.Modified, written)
		}},

		{name: "an update with a resourceVersion is refused", want: Pass, build: func(h *historyBuilder) {
			h.send("update", "", resized(h)).answered(409)
		}},
		{name: "the update keeps the change", want: Pass, build: func(h *historyBuilder) {
			h.updated(withBody(resized(h), `{"data":{"size":"5","owner":"w"}}`))
		}},
		{name: "a merge patch sets another field", want: Pass, build: func(h *historyBuilder) {
			h.patched(mergePatch, `{"data":{"owner":"w"}}`, withBody(resized(h), `{"data":{"size":"5","owner":"w"}}`))
		}},
		{name: "a merge patch removes a field by name", want: Pass, build: func(h *historyBuilder) {
			read := user(h)
			h.commit(history.Modified, withBody(read, `{"data":{"size":"3","color":"red"}}`))
			h.patched(mergePatch, `{"data":{"color":null,"owner":"w"}}`, withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "the process set the former value itself", want: Pass, build: func(h *historyBuilder) {
			read := h.updated(withBody(user(h), `{"data":{"size":"7"}}`))
			h.commit(history.Modified, withBody(read, `{"data":{"size":"5"}}`))
			h.updated(withBody(read, `{"data":{"size":"7","owner":"w"}}`))
		}},
		{name: "the process created the object", want: Pass, build: func(h *historyBuilder) {
			read := h.apply("create", "", objectOf(configMaps, "c", `{"data":{"size":"3"}}`))
			h.commit(history.Modified, withBody(read, `{"data":{"size":"5"}}`))
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "the API server sets a default", want: Pass, build: func(h *historyBuilder) {
			read := user(h)
			h.commit(history.Modified, withBody(read, `{"data":{"size":"5"}}`))
			written := withBody(read, `{"data":{"owner":"w"}}`)
			written.Version = 0
			step := h.send("update", "", &written)
			step.made = h.commit(history.Modified, withBody(read, `{"data":{"owner":"w","size":"3"}}`))
			step.answered(200)
		}},
		{name: "a change between two versions that the process had read", want: notFailed, build: func(h *historyBuilder) {
			read := resized(h)
			h.deliver(h.find("c"))
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "the process read the change by a get", want: notFailed, build: func(h *historyBuilder) {
			read := resized(h)
			h.readLive(read)
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "a merge patch with a resourceVersion", want: notFailed, build: func(h *historyBuilder) {
			h.patched(mergePatch, `{"metadata":{"resourceVersion":"102"},"data":{"size":"3"}}`, *resized(h))
		}},
		{name: "a JSON patch with a test", want: notFailed, build: func(h *historyBuilder) {
			h.patched(jsonPatch, `[{"op":"test","path":"/data/size","value":"5"},{"op":"replace","path":"/data/size","value":"3"}]`, *resized(h))
		}},
		{name: "server-side apply", want: notFailed, build: func(h *historyBuilder) {
			h.patched(serverApply, `{"data":{"size":"3"}}`, *resized(h))
		}},
		{name: "the process never received the object", want: notFailed, build: func(h *historyBuilder) {
			read := h.commit(history.Added, objectOf(configMaps, "c", `{"data":{"size":"3"}}`))
			h.commit(history.Modified, withBody(read, `{"data":{"size":"5"}}`))
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "a restarted process never received the object", want: notFailed, build: func(h *historyBuilder) {
			read := resized(h)
			h.begin("subject-0")
			written := withBody(read, `{"data":{"size":"3","owner":"w"}}`)
			written.Version = 0
			step := h.send("update", "", &written)
			step.made = h.commit(history.Modified, written)
			step.answered(200)
		}},
		{name: "the change may be the subject's", want: notFailed, build: func(h *historyBuilder) {
			read := user(h)
			changed := withBody(read, `{"data":{"size":"5"}}`)
			h.send("update", "", &changed).lost()
			h.commit(history.Modified, changed)
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "a write without a response may have made the change", want: notFailed, build: func(h *historyBuilder) {
			read := user(h)
			changed := withBody(read, `{"data":{"size":"5"}}`)
			h.send("update", "", &changed)
			h.commit(history.Modified, changed)
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "more versions than the check keeps", want: notFailed, build: func(h *historyBuilder) {
			read := user(h)
			for i := range recentVersionsMax + 1 {
				h.commit(history.Modified, withBody(read, fmt.Sprintf(`{"data":{"size":"%d"}}`, 10+i)))
			}
			h.updated(withBody(read, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "a namesake of the object that the process had read", want: notFailed, build: func(h *historyBuilder) {
			read := user(h)
			h.commit(history.Deleted, *read)
			other := *read
			other.UID = "other"
			h.commit(history.Added, withBody(&other, `{"data":{"size":"5"}}`))
			h.updated(withBody(&other, `{"data":{"size":"3","owner":"w"}}`))
		}},
		{name: "a dry run", want: NotExercised, build: func(h *historyBuilder) {
			read := resized(h)
			read.Version = 0
			h.request(history.Request{Verb: "update", Resource: configMaps, Namespace: namespace, Name: "c", Query: "dryRun=All", Object: read}).answered(200)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			h.wait(time.Second)
			test.build(h)
			test.verify(t, h, genericSettings(widgetController), "no-lost-update")
		})
	}
}

func TestPatchSets(t *testing.T) {
	for _, test := range []struct {
		patchType, patch, path, value string
		want                          bool
	}{
		{mergePatch, `{"spec":{"replicas":3}}`, "spec/replicas", "3", true},
		{mergePatch, `{"spec":{"replicas":4}}`, "spec/replicas", "3", false},
		{mergePatch, `{"spec":{"replicas":null}}`, "spec/replicas", "", false},
		{mergePatch, `{"spec":null}`, "spec/replicas", "", false},
		{mergePatch, `{"metadata":{"labels":{"a/b":"x"}}}`, "metadata/labels/a~1b", "x", true},
		{mergePatch, `{"spec":{"ports":[{"name":"http"}]}}`, "spec/ports/https/port", "443", true},
		{mergePatch, `"text"`, "spec/replicas", "3", false},
		{mergePatch, `nonsense`, "spec/replicas", "3", false},
		{jsonPatch, `[{"op":"replace","path":"/spec/replicas","value":3}]`, "spec/replicas", "3", true},
		{jsonPatch, `[{"op":"replace","path":"/spec","value":{}}]`, "spec/replicas", "3", true},
		{jsonPatch, `[{"op":"remove","path":"/spec/replicas"}]`, "spec/replicas", "", false},
		{jsonPatch, `[{"op":"remove","path":"/metadata/finalizers/0"}]`, "metadata/finalizers/x", "", true},
		{jsonPatch, `[{"op":"add","path":"/spec/other","value":3}]`, "spec/replicas", "3", false},
		{jsonPatch, `{}`, "spec/replicas", "3", false},
	} {
		if got := patchSets(&history.Request{PatchType: test.patchType, Patch: []byte(test.patch)}, test.path, test.value); got != test.want {
			t.Errorf("%s sets %s to %q: got %t, expected %t", test.patch, test.path, test.value, got, test.want)
		}
	}
}
