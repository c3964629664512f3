package explore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
)

// story builds a history of a run for a test, record by record.
type story struct {
	records []*history.Record
	id      uint64
}

func begin() *story {
	return new(story).add(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
}

func (s *story) add(r history.Record) *story {
	r.Seq = int64(len(s.records) + 1)
	s.records = append(s.records, &r)
	return s
}

// deliver appends the commit of an object's version, and the watch event that delivers it.
func (s *story) deliver(kind history.EventType, o history.Object) *story {
	s.add(history.Record{Commit: &history.Commit{Type: kind, Object: o}})
	return s.again(kind, o)
}

// again appends a watch event for a version that is committed already, such as after a new watch.
func (s *story) again(kind history.EventType, o history.Object) *story {
	return s.add(history.Record{Delivery: &history.Delivery{Subject: "subject-0", Resource: o.Resource, Type: kind, Object: o}})
}

// write appends a write of the controllers under test, the response, and the commit of the written
// version.
func (s *story) write(verb, subresource string, sent, committed history.Object) *story {
	s.request(verb, subresource, sent, history.Response{Code: 200, ServerCode: 200, Reached: true, Object: &committed})
	return s.add(history.Record{Commit: &history.Commit{Type: history.Modified, Object: committed}})
}

// refused appends a write of the controllers under test, and a response with which the API server
// refuses it.
func (s *story) refused(verb, subresource string, sent history.Object) *story {
	return s.request(verb, subresource, sent, history.Response{Code: 409, ServerCode: 409, Reached: true})
}

// request appends a write of the controllers under test, what happens before its response, and the
// response.
func (s *story) request(verb, subresource string, sent history.Object, response history.Response, between ...history.Record) *story {
	s.id++
	request := &history.Request{ID: s.id, Subject: "subject-0", Verb: verb, Resource: sent.Resource, Subresource: subresource, Namespace: sent.Namespace, Name: sent.Name}
	if verb != "delete" && verb != "patch" {
		request.Object = &sent
	}
	response.ID = s.id
	s.add(history.Record{Request: request})
	for _, record := range between {
		s.add(record)
	}
	return s.add(history.Record{Response: &response})
}

func (s *story) phase(name history.PhaseName) *story {
	return s.add(history.Record{Phase: &history.Phase{Name: name}})
}

func (s *story) all() iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for _, r := range s.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *story) learn(t *testing.T) *explore.Lesson {
	t.Helper()
	lesson, err := explore.Learn(s.all())
	if err != nil {
		t.Fatal(err)
	}
	return lesson
}

// object returns a version of an object with the given body.
func object(resource, name string, version history.Version, body string) history.Object {
	ref := history.Ref{Resource: resource, Namespace: "ns", Name: name, UID: types.UID("uid-" + resource + "-" + name), Version: version}
	return history.Object{Ref: ref, Body: json.RawMessage(body)}
}

// replicaSet returns a version of the ReplicaSet web.
func replicaSet(version history.Version, replicas int) history.Object {
	return object("replicasets.apps", "web", version, fmt.Sprintf(`{"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"web"}}}}`, replicas))
}

// pod returns a version of a pod of the ReplicaSet web. For a create request, the name is empty.
func pod(name string, version history.Version) history.Object {
	o := object("pods", name, version, `{"spec":{}}`)
	o.GenerateName, o.Owners = "web-", []history.Owner{{Kind: "ReplicaSet", Name: "web", UID: "uid-replicasets.apps-web", Controller: true}}
	return o
}

// viewOf describes the events on which a write may depend, in one line.
func viewOf(l *explore.Lesson, write int) string {
	var view []string
	for _, i := range l.Writes[write].View {
		view = append(view, l.Events[i].String())
	}
	slices.Sort(view)
	return strings.Join(view, "; ")
}

// TestLearn checks how Learn identifies writes, and on which events each write may depend.
func TestLearn(t *testing.T) {
	service := object("services", "front", 11, `{"spec":{"selector":{"app":"web"}}}`)
	l := begin().
		deliver(history.Added, replicaSet(10, 1)).
		deliver(history.Added, service).
		write("create", "", pod("", 0), pod("web-a", 12)).
		again(history.Added, pod("web-a", 12)).
		write("update", "status", replicaSet(10, 1), replicaSet(13, 1)).
		deliver(history.Modified, replicaSet(14, 0)).
		refused("update", "status", replicaSet(13, 1)).
		write("update", "status", replicaSet(14, 0), replicaSet(14, 0)).
		write("delete", "", pod("web-a", 0), pod("web-a", 16)).
		learn(t)
	want := []struct {
		write            string
		committed        int
		refused, changed bool
		view             string
	}{
		{"create of pods web-* number 1", 1, false, true, "ADDED event of replicasets.apps web number 1"},
		{"update of replicasets.apps/status web number 1", 1, false, true, "ADDED event of pods web-* number 1; ADDED event of replicasets.apps web number 1"},
		{"update of replicasets.apps/status web number 2", 0, true, false, "ADDED event of pods web-* number 1; MODIFIED event of replicasets.apps web number 1"},
		{"update of replicasets.apps/status web number 3", 2, false, false, "ADDED event of pods web-* number 1; MODIFIED event of replicasets.apps web number 1"},
		{"delete of pods web-* number 1", 1, false, true, "ADDED event of pods web-* number 1; MODIFIED event of replicasets.apps web number 1"},
	}
	if len(l.Writes) != len(want) {
		t.Fatalf("found %d writes, want %d", len(l.Writes), len(want))
	}
	for i, w := range want {
		got := l.Writes[i]
		if got.String() != w.write || got.Committed != w.committed || got.Refused != w.refused || got.Changed != w.changed {
			t.Errorf("write %d: %s, committed as number %d, refused: %v, changed: %v; want %+v", i, got, got.Committed, got.Refused, got.Changed, w)
		}
		// The Service selects the pods, so a view may contain the Service's event. The test
		// ignores this event.
		if view := strings.ReplaceAll(viewOf(l, i), "ADDED event of services front number 1; ", ""); view != w.view {
			t.Errorf("view of %s: %s; want %s", got, view, w.view)
		}
	}
	broken := errors.New("cut short")
	if _, err := explore.Learn(func(yield func(*history.Record, error) bool) { yield(nil, broken) }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// TestRefers checks on which objects a write may depend. In each history, the controller receives
// one object and then writes another object.
func TestRefers(t *testing.T) {
	owned := object("configmaps", "settings", 11, `{}`)
	owned.Owners = []history.Owner{{Kind: "Widget", Name: "one", UID: "uid-widgets.example.com-one"}}
	labeled := object("pods", "loose", 11, `{}`)
	labeled.Labels = map[string]string{"app": "web"}
	widget := object("widgets.example.com", "one", 10, `{"spec":{"secretName":"password"}}`)
	marked := object("persistentvolumeclaims", "data", 11, `{}`)
	marked.Labels = map[string]string{"cluster": "one"}
	elsewhere := object("secrets", "password", 11, "")
	elsewhere.Namespace = "other"
	tests := []struct {
		name           string
		event, written history.Object
		related        bool
	}{
		{"the object itself", widget, widget, true},
		{"an owner", widget, owned, true},
		{"an owned object", owned, widget, true},
		{"an object with a label that has the name", widget, marked, true},
		{"another object without a reference", object("configmaps", "other", 11, `{}`), widget, false},
		{"an object named in a field", object("secrets", "password", 11, ""), widget, true},
		{"the same name in another namespace", elsewhere, widget, false},
		{"a selected object", labeled, replicaSet(10, 1), true},
		{"the selector of a Service, for its Endpoints", object("services", "web", 11, `{}`), object("endpoints", "web", 10, `{}`), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sent, committed := test.written, test.written
			committed.Version = 99
			l := begin().deliver(history.Added, test.event).write("update", "", sent, committed).learn(t)
			if got := len(l.Writes[0].View) == 1; got != test.related || l.Events[0].Related != test.related {
				t.Errorf("related: %v; want %v", got, test.related)
			}
		})
	}
}

// withoutLater is the reason for which the plan has no place for a stale view.
const withoutLater = "the subject does not write the same object again, and nobody creates the object again that the subject deletes"

// TestPlan checks which places are pruned, and for which reasons.
func TestPlan(t *testing.T) {
	rs, changed, ended := replicaSet(10, 1), replicaSet(14, 2), replicaSet(20, 2)
	created := func(l *story) *story { return l.write("create", "", pod("", 0), pod("web-a", 12)) }
	tests := []struct {
		name    string
		action  explore.Action
		history *story
		kept    []string
		pruned  map[string]int
	}{
		{
			"a refused write", explore.Lost, begin().refused("update", "", rs), nil,
			map[string]int{"the API server refused the write, so that it committed nothing": 1},
		},
		{
			"a write without a change", explore.Crash, begin().write("update", "", rs, rs), nil,
			map[string]int{"the write changed nothing": 1},
		},
		{
			"a patch without a change", explore.Crash,
			begin().deliver(history.Added, rs).write("patch", "", rs, rs).write("patch", "", rs, changed),
			[]string{"crash at patch of replicasets.apps web number 2"},
			map[string]int{"the write changed nothing": 1},
		},
		{
			"a crash after a delete in the same state", explore.CrashBefore,
			begin().deliver(history.Added, pod("web-a", 12)).
				request("delete", "", pod("web-a", 0), history.Response{Code: 200, ServerCode: 200, Reached: true}, history.Record{Commit: &history.Commit{Type: history.Deleted, Object: pod("web-a", 13)}}).
				write("update", "status", rs, changed),
			[]string{"crash-before at delete of pods web-* number 1"},
			map[string]int{"the crash after the previous write leaves the same committed state": 1},
		},
		{
			"a crash in the same state", explore.CrashBefore,
			created(begin()).write("update", "status", rs, replicaSet(13, 1)).deliver(history.Modified, changed).write("create", "", pod("", 0), pod("web-b", 15)),
			[]string{"crash-before at create of pods web-* number 1", "crash-before at create of pods web-* number 2"},
			map[string]int{"the crash after the previous write leaves the same committed state": 1},
		},
		{
			"events that no write depends on", explore.Held,
			created(begin().deliver(history.Added, rs).again(history.Modified, rs).deliver(history.Modified, replicaSet(11, 1)).deliver(history.Added, object("configmaps", "other", 9, `{}`))).
				phase(history.PhaseSettle).deliver(history.Modified, ended),
			nil,
			map[string]int{
				"the subject sends no write between the event and the next event of the same object":    1,
				"the event shows the subject nothing new":                                               2,
				"the event arrives after the workload":                                                  1,
				"no write of the subject refers to the object, and the object refers to no written one": 1,
			},
		},
		{
			"a held event", explore.Held, created(begin().deliver(history.Added, rs)),
			[]string{"held at ADDED event of replicasets.apps web number 1"}, nil,
		},
		{
			"the last event of an object", explore.Skipped, created(begin().deliver(history.Added, rs)), nil,
			map[string]int{"the event is the last one of the object, so that the subject must receive it": 1},
		},
		{
			"a skipped event", explore.Skipped, created(begin().deliver(history.Added, rs)).deliver(history.Modified, changed),
			[]string{"skipped at ADDED event of replicasets.apps web number 1"},
			map[string]int{"the subject sends no write between the event and the next event of the same object": 1},
		},
		{
			"an event whose answer is the next version", explore.Skipped,
			begin().deliver(history.Added, rs).write("update", "status", rs, changed).deliver(history.Modified, changed), nil,
			map[string]int{
				"the next version of the object is the subject's own write in answer to the event":   1,
				"the subject sends no write between the event and the next event of the same object": 1,
			},
		},
		{
			"a stale view", explore.Stale,
			begin().deliver(history.Added, rs).write("update", "status", rs, replicaSet(12, 1)).deliver(history.Modified, changed).write("update", "status", changed, replicaSet(15, 2)),
			[]string{"stale at ADDED event of replicasets.apps web number 1, restart after update of replicasets.apps/status web number 2"},
			map[string]int{withoutLater: 1},
		},
		{
			"a stale view of an object that others create again", explore.Stale,
			begin().deliver(history.Added, rs).deliver(history.Added, pod("web-a", 9)).write("delete", "", pod("web-a", 9), pod("web-a", 12)).deliver(history.Modified, changed).
				write("update", "", object("configmaps", "early", 9, `{}`), object("configmaps", "early", 13, `{"data":{}}`)).
				write("update", "", object("configmaps", "cause", 9, `{}`), object("configmaps", "cause", 14, `{"data":{}}`)).
				add(history.Record{Commit: &history.Commit{Type: history.Added, Object: pod("web-a", 16)}}).
				write("update", "", object("configmaps", "other", 9, `{}`), object("configmaps", "other", 17, `{"data":{}}`)),
			[]string{
				"stale at ADDED event of replicasets.apps web number 1, restart after update of configmaps cause number 1",
				"stale at ADDED event of replicasets.apps web number 1, restart after update of configmaps other number 1",
			},
			map[string]int{
				"the object does not change before a later write, so that the subject would restart with current objects": 2,
				"the subject sends no write between the event and the next event of the same object":                      1,
			},
		},
		{
			"a view that is not stale", explore.Stale,
			begin().deliver(history.Added, rs).write("update", "status", rs, replicaSet(12, 1)).write("update", "status", replicaSet(12, 1), replicaSet(15, 2)),
			nil,
			map[string]int{"the object does not change before a later write, so that the subject would restart with current objects": 1},
		},
		{
			"a stale view with a later write that no fault can name", explore.Stale,
			begin().deliver(history.Added, rs).deliver(history.Added, pod("web-a", 9)).write("delete", "", pod("web-a", 9), pod("web-a", 12)).deliver(history.Modified, changed).
				write("update", "", object("secrets", "later", 9, `{}`), object("secrets", "later", 14, `{"data":{}}`)).
				add(history.Record{Commit: &history.Commit{Type: history.Added, Object: pod("web-a", 16)}}), nil,
			map[string]int{
				"no fault can name secrets; add its kind to operator.kinds of the scenario":                               1,
				"the object does not change before a later write, so that the subject would restart with current objects": 1,
				"the subject sends no write between the event and the next event of the same object":                      1,
			},
		},
		{
			"a resource that no fault can name", explore.Lost, begin().write("update", "", object("widgets.example.com", "one", 10, `{}`), object("widgets.example.com", "one", 11, `{}`)), nil,
			map[string]int{"no fault can name widgets.example.com; add its kind to operator.kinds of the scenario": 1},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan := explore.NewPlan([]string{"pods", "replicasets.apps", "configmaps"}, []explore.Action{test.action}, []*explore.Lesson{test.history.learn(t)})
			var kept []string
			for _, p := range plan.Places {
				kept = append(kept, p.String())
			}
			var pruned map[string]int
			for _, p := range plan.Pruned {
				if pruned == nil {
					pruned = map[string]int{}
				}
				pruned[p.Reason] = p.Places
			}
			if diff := cmp.Diff(test.kept, kept); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.pruned, pruned); diff != "" {
				t.Errorf("pruned (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrder checks that a plan takes one place of each action in turn. Among the places of one action,
// the first place of each verb and resource comes first.
func TestOrder(t *testing.T) {
	lesson := begin().deliver(history.Added, replicaSet(10, 1)).
		write("create", "", pod("", 0), pod("web-a", 12)).write("create", "", pod("", 0), pod("web-b", 13)).write("update", "", replicaSet(10, 1), replicaSet(14, 2)).learn(t)
	for _, test := range []struct {
		actions []explore.Action
		want    []string
	}{
		{[]explore.Action{explore.Crash, explore.Held, explore.Lost}, []string{
			"crash at create of pods web-* number 1", "held at ADDED event of replicasets.apps web number 1", "lost at create of pods web-* number 1",
			"crash at update of replicasets.apps web number 1", "lost at update of replicasets.apps web number 1",
			"crash at create of pods web-* number 2", "lost at create of pods web-* number 2",
		}},
		{[]explore.Action{explore.Held, explore.Crash}, []string{
			"held at ADDED event of replicasets.apps web number 1", "crash at create of pods web-* number 1",
			"crash at update of replicasets.apps web number 1", "crash at create of pods web-* number 2",
		}},
	} {
		var got []string
		for _, p := range explore.NewPlan([]string{"pods", "replicasets.apps"}, test.actions, []*explore.Lesson{lesson}).Places {
			got = append(got, p.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("places for %v (-want +got):\n%s", test.actions, diff)
		}
	}
}

// TestPlanOfSeveralRuns checks that a plan has only places that occur in every run without faults.
// Fields that differ between these runs are masked in the baseline.
func TestPlanOfSeveralRuns(t *testing.T) {
	first := begin().write("update", "", replicaSet(10, 1), replicaSet(11, 2)).write("update", "", replicaSet(11, 2), replicaSet(12, 3)).learn(t)
	second := begin().write("update", "", replicaSet(10, 1), replicaSet(11, 4)).learn(t)
	plan := explore.NewPlan([]string{"replicasets.apps"}, []explore.Action{explore.Lost}, []*explore.Lesson{first, second})
	if len(plan.Places) != 1 || len(plan.Pruned) != 1 || plan.Pruned[0].Reason != "the place is not in every run without faults" {
		t.Errorf("places %v, pruned %v; want the first write, and the second one pruned", plan.Places, plan.Pruned)
	}
	want := baseline.Facts{
		"replicasets.apps ns/web": "1", "replicasets.apps ns/web spec/replicas": "*", "replicasets.apps ns/web spec/selector/matchLabels/app": "web",
	}
	if diff := cmp.Diff(want, plan.Baseline.End); diff != "" {
		t.Errorf("end state (-want +got):\n%s", diff)
	}
}
