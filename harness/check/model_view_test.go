package check

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// viewOf returns the informer caches of the last process at the end of a history.
func viewOf(t *testing.T, h *historyBuilder) *view {
	t.Helper()
	m := newModel(Settings{})
	for _, r := range h.records {
		if err := m.observe(r); err != nil {
			t.Fatal(err)
		}
	}
	return m.processes[h.subject].view
}

func TestView(t *testing.T) {
	type versions = map[string]history.Version
	// The first object that is committed, the ReplicaSet, has resourceVersion 101. The pods
	// have versions from 102.
	for _, c := range []struct {
		name  string
		build func(h *historyBuilder, rs *history.Object)
		want  versions
	}{
		{"committed, not delivered", func(h *historyBuilder, rs *history.Object) {
			h.pod(rs, "web")
		}, versions{}},
		{"delivered", func(h *historyBuilder, rs *history.Object) {
			h.deliver(h.pod(rs, "web"))
		}, versions{"web-1": 102}},
		{"deleted", func(h *historyBuilder, rs *history.Object) {
			pod := h.pod(rs, "web")
			h.deliver(pod)
			h.deliverGone(h.commit(history.Deleted, *pod))
		}, versions{}},
		{"a new list replaces the cache", func(h *historyBuilder, rs *history.Object) {
			pods := h.running(rs, 2)
			h.commit(history.Deleted, *pods[0])
			h.pod(rs, "web")
			h.list(objects.PodResource)
		}, versions{"web-2": 103, "web-3": 105}},
		{"a stale list restores old versions", func(h *historyBuilder, rs *history.Object) {
			pod := h.pod(rs, "web")
			h.deliver(h.terminate(pod))
			h.listPart(objects.PodResource, "", []history.Object{*pod})
		}, versions{"web-1": 102}},
		{"a list with a selector does not remove other objects", func(h *historyBuilder, rs *history.Object) {
			h.running(rs, 2)
			h.listPart(objects.PodResource, "labelSelector=app%3Dother", nil)
		}, versions{"web-1": 102, "web-2": 103}},
		{"a list of two pages", func(h *historyBuilder, rs *history.Object) {
			pods := h.running(rs, 3)
			page := func(pod *history.Object, continued, more bool) {
				step := h.request(history.Request{Verb: "list", Resource: objects.PodResource}).answered(200)
				h.append(history.Record{List: &history.List{
					ID: step.request.ID, Subject: h.subject, Resource: objects.PodResource, Version: h.version,
					Items: []history.Object{*pod}, Continued: continued, More: more,
				}})
			}
			page(pods[0], false, true)
			page(pods[2], true, false)
		}, versions{"web-1": 102, "web-3": 104}},
		{"a first page without the second", func(h *historyBuilder, rs *history.Object) {
			pods := h.running(rs, 2)
			step := h.request(history.Request{Verb: "list", Resource: objects.PodResource}).answered(200)
			h.append(history.Record{List: &history.List{
				ID: step.request.ID, Subject: h.subject, Resource: objects.PodResource, Items: []history.Object{*pods[0]}, More: true,
			}})
		}, versions{"web-1": 102, "web-2": 103}},
		{"a list that failed", func(h *historyBuilder, rs *history.Object) {
			h.running(rs, 1)
			h.request(history.Request{Verb: "list", Resource: objects.PodResource}).answered(500)
		}, versions{"web-1": 102}},
		{"a complete streaming list replaces the cache", func(h *historyBuilder, rs *history.Object) {
			pods := h.running(rs, 2)
			h.watch(objects.PodResource, "allowWatchBookmarks=true&sendInitialEvents=true")
			h.deliver(pods[1])
			h.bookmark(objects.PodResource, true)
		}, versions{"web-2": 103}},
		{"an incomplete streaming list", func(h *historyBuilder, rs *history.Object) {
			pods := h.running(rs, 2)
			h.watch(objects.PodResource, "sendInitialEvents=true")
			h.deliver(pods[1])
			h.append(history.Record{WatchClosed: &history.WatchClosed{ID: h.watches[objects.PodResource], Subject: h.subject}})
			h.watch(objects.PodResource, "")
		}, versions{"web-1": 102, "web-2": 103}},
		{"a new process has empty caches", func(h *historyBuilder, rs *history.Object) {
			h.running(rs, 2)
			h.begin("subject-0")
			h.watch(objects.PodResource, "")
		}, versions{}},
		{"a delivery to a process that has ended", func(h *historyBuilder, rs *history.Object) {
			old := h.watches[objects.PodResource]
			h.begin("subject-0")
			h.watch(objects.PodResource, "")
			h.watches[objects.PodResource] = old
			h.deliver(h.pod(rs, "web"))
		}, versions{}},
		{"an object with metadata only", func(h *historyBuilder, rs *history.Object) {
			bare := *h.pod(rs, "web")
			bare.Body = nil
			h.deliver(&bare)
		}, versions{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistoryBuilder()
			rs := deliveredReplicaSet(h, 3)
			c.build(h, rs)
			got := versions{}
			for _, p := range viewOf(t, h).pods {
				got[p.Name] = p.Version
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestCachedPodStates requires that the model keeps earlier states of a pod until an idle period
// of the process.
func TestCachedPodStates(t *testing.T) {
	h := newHistoryBuilder()
	rs := deliveredReplicaSet(h, 1)
	pods := h.running(rs, 1)
	h.deliver(h.removeOwner(pods[0]))
	h.deliver(h.revise(pods[0].Name, "status", map[string]any{"phase": "Pending"})) // this change begins no new state
	owners := func() []string {
		var all []string
		for _, state := range viewOf(t, h).cachedPodStates(pods[0].UID) {
			all = append(all, state.pod.Controller.Name)
		}
		return all
	}
	if diff := cmp.Diff([]string{"web", ""}, owners()); diff != "" {
		t.Errorf("before the process was idle: -want +got:\n%s", diff)
	}
	h.wait(3 * time.Second)
	h.readLive(rs)
	if diff := cmp.Diff([]string{""}, owners()); diff != "" {
		t.Errorf("after the process was idle: -want +got:\n%s", diff)
	}
}

// TestDirectList checks that only a list with a selector and without the parameters of an informer
// counts as direct. The listed objects must not reach the cache.
func TestDirectList(t *testing.T) {
	for query, direct := range map[string]bool{
		"labelSelector=app%3Dweb":                             true,
		"fieldSelector=spec.nodeName%3Dnode-0":                true,
		"labelSelector=app%3Dweb&limit=500&resourceVersion=0": false,
		"labelSelector=app%3Dweb&resourceVersion=7":           false,
		"limit=500": false,
		"":          false,
	} {
		h := newHistoryBuilder()
		h.listPart(objects.ReplicaSetResource, query, []history.Object{*deliveredReplicaSet(newHistoryBuilder(), 3)})
		model := newModel(testSettings)
		for record, err := range h.all() {
			if err == nil {
				err = model.observe(record)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if cached := len(model.processes[h.subject].view.owners); (cached == 0) != direct {
			t.Errorf("list with the query %q: %d ReplicaSets in the cache; want none only for a direct list", query, cached)
		}
	}
}
