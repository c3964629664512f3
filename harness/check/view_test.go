package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// viewOf is the view of a story's subject at its end.
func viewOf(t *testing.T, s *story) *view {
	t.Helper()
	m := newModel(Settings{})
	for _, r := range s.records {
		if err := m.observe(r); err != nil {
			t.Fatal(err)
		}
	}
	return m.processes[s.subject].view
}

func TestView(t *testing.T) {
	type versions = map[string]history.Version
	// The story begins at version 100; the ReplicaSet is 101, pods from 102 on.
	for _, c := range []struct {
		name string
		tell func(s *story, rs *history.Object)
		want versions
	}{
		{"what was not delivered is not there", func(s *story, rs *history.Object) {
			s.pod(rs, "web")
		}, versions{}},
		{"delivered", func(s *story, rs *history.Object) {
			s.deliver(s.pod(rs, "web"))
		}, versions{"web-1": 102}},
		{"deleted", func(s *story, rs *history.Object) {
			pod := s.pod(rs, "web")
			s.deliver(pod)
			s.deliverGone(s.commit(history.Deleted, *pod))
		}, versions{}},
		{"a relist replaces", func(s *story, rs *history.Object) {
			pods := s.running(rs, 2)
			s.commit(history.Deleted, *pods[0])
			s.pod(rs, "web")
			s.list(podResource)
		}, versions{"web-2": 103, "web-3": 105}},
		{"a stale relist goes back", func(s *story, rs *history.Object) {
			pod := s.pod(rs, "web")
			s.deliver(s.terminate(pod))
			s.listPart(podResource, "", []history.Object{*pod})
		}, versions{"web-1": 102}},
		{"a list of some says nothing of the others", func(s *story, rs *history.Object) {
			s.running(rs, 2)
			s.listPart(podResource, "labelSelector=app%3Dother", nil)
		}, versions{"web-1": 102, "web-2": 103}},
		{"pages are one list", func(s *story, rs *history.Object) {
			pods := s.running(rs, 3)
			page := func(pod *history.Object, continued, more bool) {
				a := s.request(history.Request{Verb: "list", Resource: podResource}).answered(200)
				s.append(history.Record{List: &history.List{
					ID: a.request.ID, Subject: s.subject, Resource: podResource, Version: s.version,
					Items: []history.Object{*pod}, Continued: continued, More: more,
				}})
			}
			page(pods[0], false, true)
			page(pods[2], true, false)
		}, versions{"web-1": 102, "web-3": 104}},
		{"a first page alone changes nothing", func(s *story, rs *history.Object) {
			pods := s.running(rs, 2)
			a := s.request(history.Request{Verb: "list", Resource: podResource}).answered(200)
			s.append(history.Record{List: &history.List{
				ID: a.request.ID, Subject: s.subject, Resource: podResource, Items: []history.Object{*pods[0]}, More: true,
			}})
		}, versions{"web-1": 102, "web-2": 103}},
		{"a list that was refused", func(s *story, rs *history.Object) {
			s.running(rs, 1)
			s.request(history.Request{Verb: "list", Resource: podResource}).answered(500)
		}, versions{"web-1": 102}},
		{"a streaming list replaces when it is whole", func(s *story, rs *history.Object) {
			pods := s.running(rs, 2)
			s.watch(podResource, "allowWatchBookmarks=true&sendInitialEvents=true")
			s.deliver(pods[1])
			s.bookmark(podResource, true)
		}, versions{"web-2": 103}},
		{"a streaming list that breaks off", func(s *story, rs *history.Object) {
			pods := s.running(rs, 2)
			s.watch(podResource, "sendInitialEvents=true")
			s.deliver(pods[1])
			s.append(history.Record{WatchClosed: &history.WatchClosed{ID: s.watches[podResource], Subject: s.subject}})
			s.watch(podResource, "")
		}, versions{"web-1": 102, "web-2": 103}},
		{"a new process knows nothing", func(s *story, rs *history.Object) {
			s.running(rs, 2)
			s.begin("subject-0")
			s.watch(podResource, "")
		}, versions{}},
		{"what comes for a process that ended is lost", func(s *story, rs *history.Object) {
			old := s.watches[podResource]
			s.begin("subject-0")
			s.watch(podResource, "")
			s.watches[podResource] = old
			s.deliver(s.pod(rs, "web"))
		}, versions{}},
		{"metadata alone is not shown", func(s *story, rs *history.Object) {
			bare := *s.pod(rs, "web")
			bare.Body = nil
			s.deliver(&bare)
		}, versions{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory()
			rs := told(s, 3)
			c.tell(s, rs)
			got := versions{}
			for _, p := range viewOf(t, s).pods {
				got[p.Name] = p.Version
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSightings: how a pod stood is remembered until the process was idle.
func TestSightings(t *testing.T) {
	s := newStory()
	rs := told(s, 1)
	pods := s.running(rs, 1)
	s.deliver(s.strip(pods[0]))
	s.deliver(s.revise(pods[0].Name, "status", map[string]any{"phase": "Pending"})) // no change of claim
	seen := func() []string {
		var all []string
		for _, sighting := range viewOf(t, s).sightings(pods[0].UID) {
			all = append(all, sighting.pod.controller.Name)
		}
		return all
	}
	if diff := cmp.Diff([]string{"web", ""}, seen()); diff != "" {
		t.Errorf("at once: -want +got:\n%s", diff)
	}
	s.wait(3 * time.Second)
	s.readLive(rs)
	if diff := cmp.Diff([]string{""}, seen()); diff != "" {
		t.Errorf("after an idle spell: -want +got:\n%s", diff)
	}
}

// TestTallies: counts kept step by step are those of counting anew.
func TestTallies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			uid := types.UID(fmt.Sprint("pod-", rapid.IntRange(0, 5).Draw(t, "pod")))
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				w.setOwner(drawOwner(t, name))
			case 1:
				w.removeOwner(types.UID(name.Draw(t, "gone")))
			case 2:
				w.removePod(uid)
			default:
				w.setPod(drawPod(t, uid, name))
			}
			for id, o := range w.owners {
				if diff := cmp.Diff(recount(w, o), w.tally(id), cmp.AllowUnexported(tally{})); diff != "" {
					t.Fatalf("tally of %s: -counted anew +kept:\n%s", id, diff)
				}
			}
		}
	})
}

func drawOwner(t *rapid.T, name *rapid.Generator[string]) *owner {
	uid := name.Draw(t, "owner")
	return &owner{
		Ref: history.Ref{Namespace: namespace, Name: uid, UID: types.UID(uid)}, kind: &ownerKinds[0],
		selector: labels.SelectorFromSet(labels.Set{"app": name.Draw(t, "selector")}),
		setFacts: setFacts{template: &template{labels: labels.SelectorFromSet(labels.Set{"tier": name.Draw(t, "template")})}},
	}
}

func drawPod(t *rapid.T, uid types.UID, name *rapid.Generator[string]) *pod {
	p := &pod{
		Ref:    history.Ref{Resource: podResource, Namespace: namespace, Name: string(uid), UID: uid},
		labels: labels.Set{"app": name.Draw(t, "app"), "tier": name.Draw(t, "tier")},
		active: rapid.Bool().Draw(t, "active"), ready: rapid.Bool().Draw(t, "ready"),
	}
	if rapid.Bool().Draw(t, "controlled") {
		p.controller.UID = types.UID(name.Draw(t, "controller"))
	}
	return p
}

func recount(w *world, o *owner) (t tally) {
	for _, p := range w.pods {
		matches := o.selector.Matches(p.labels)
		switch {
		case !p.active:
		case p.controller.UID == o.UID:
			t.controlled++
			if matches {
				t.replicas++
				t.labeled += truth(o.template.labels.Matches(p.labels))
				t.ready += truth(p.ready)
			}
		case p.orphan() && matches:
			t.orphans++
		}
	}
	return t
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
