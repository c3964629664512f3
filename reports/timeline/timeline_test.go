package timeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// The resources of the objects in the tests.
var (
	replicaSets  = resourceOf(kube.ReplicaSet)
	deployments  = resourceOf(kube.Deployment)
	controllers  = resourceOf(kube.ReplicationController)
	statefulSets = resourceOf("StatefulSet")
	revisions    = resourceOf("ControllerRevision")
)

// historyBuilder builds a history with one record per second.
type historyBuilder struct{ records []*history.Record }

func newHistory() *historyBuilder {
	t := new(historyBuilder)
	t.add(history.Record{Start: &history.Start{Format: history.Format, Namespace: "ns", Subject: "ours"}})
	return t
}

// add appends a record and returns the record's number (Seq). The record's time is Seq - 1
// seconds.
func (t *historyBuilder) add(r history.Record) int64 {
	r.Seq, r.At = int64(len(t.records)+1), time.Duration(len(t.records))*time.Second
	t.records = append(t.records, &r)
	return r.Seq
}

func (t *historyBuilder) all() iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for _, r := range t.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// build builds the timeline in one step and from a Draft, and checks that the two timelines are
// equal.
func (t *historyBuilder) build(test *testing.T, results ...check.Result) *Timeline {
	test.Helper()
	got, err := Build(t.all(), results)
	if err != nil {
		test.Fatal(err)
	}
	cited := map[int64]*history.Record{}
	for _, seq := range Cited(results) {
		cited[seq] = t.records[seq-1]
	}
	finished, err := NewDraft(t.all()).Finish(results, cited)
	if err != nil {
		test.Fatal(err)
	}
	if diff := cmp.Diff(got, finished); diff != "" {
		test.Errorf("from a draft (-want +got):\n%s", diff)
	}
	return got
}

// object returns a version of an object. The argument owner may be nil.
func object(resource, name string, version int, owner *history.Owner, body string) history.Object {
	o := history.Object{Ref: history.Ref{Resource: resource, Namespace: "ns", Name: name, UID: uid(resource, name), Version: history.Version(version)}, Body: json.RawMessage(body)}
	if owner != nil {
		owner.Controller = true
		o.Owners = []history.Owner{*owner}
	}
	return o
}

const readyPod = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`

func (t *historyBuilder) commit(kind history.EventType, o history.Object) int64 {
	return t.add(history.Record{Commit: &history.Commit{Type: kind, Object: o}})
}

func (t *historyBuilder) request(id uint64, verb, resource, name string, o *history.Object) int64 {
	return t.add(history.Record{Request: &history.Request{ID: id, Subject: "s", Verb: verb, Resource: resource, Namespace: "ns", Name: name, Object: o}})
}

func (t *historyBuilder) answer(id uint64, code int) int64 {
	return t.add(history.Record{Response: &history.Response{ID: id, Code: code, ServerCode: code, Reached: true}})
}

func (t *historyBuilder) delivery(id uint64, o history.Object) int64 {
	return t.add(history.Record{Delivery: &history.Delivery{ID: id, Subject: "s", Resource: o.Resource, Type: history.Modified, Object: o}})
}

// markText describes a mark of the timeline in one line.
func markText(t *Timeline, m Mark) string {
	return fmt.Sprintf("%s | %s %s %s | %s | %v-%v", t.Tracks[m.Track].Name, m.Kind, m.Action, m.Object, m.Note, m.From.Seconds(), m.To.Seconds())
}

func TestMarks(t *testing.T) {
	web := &history.Owner{Kind: "ReplicaSet", Name: "web", UID: "u"}
	pod := object(pods, "web-1", 7, web, `{"status":{"phase":"Pending"}}`)
	made := pod
	made.Name, made.GenerateName = "", "web-"
	for _, test := range []struct {
		name  string
		build func(*historyBuilder)
		want  []string
	}{
		{"a step lasts until its end", func(x *historyBuilder) {
			x.add(history.Record{Step: &history.Step{Index: 1, Event: history.StepBegun, Detail: "scale"}})
			x.add(history.Record{Step: &history.Step{Index: 1, Event: history.StepLate}})
			x.add(history.Record{Step: &history.Step{Index: 1, Event: history.StepFailed, Error: "no"}})
		}, []string{"workload | step step 1  | scale: no | 1-3"}},
		{"an unfinished step lasts until the end", func(x *historyBuilder) {
			x.add(history.Record{Step: &history.Step{Event: history.StepBegun, Detail: "scale"}})
			x.add(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
		}, []string{"workload | step step 0  | scale | 1-2"}},
		{"a request lasts until its response", func(x *historyBuilder) {
			x.request(1, "create", pods, "", &made)
			x.answer(1, 201)
		}, []string{"pods of replicasets.apps web | write create pods web- | 201 | 1-2"}},
		{"a refused request", func(x *historyBuilder) {
			x.request(1, "delete", pods, "web-1", nil)
			x.add(history.Record{Response: &history.Response{ID: 1, Code: 500, Reason: "InternalError"}})
		}, []string{"pods of no owner | refused delete pods web-1 | 500, InternalError, never reached the API server | 1-2"}},
		{"a request without a response", func(x *historyBuilder) {
			x.request(1, "get", deployments, "web", nil)
		}, []string{"s: reads and watches | read get deployments.apps web | no response recorded | 1-1"}},
		{"a lost response", func(x *historyBuilder) {
			x.request(1, "update", endpoints, "web", nil)
			x.add(history.Record{Response: &history.Response{ID: 1, ServerCode: 200, Reached: true}})
		}, []string{"endpoints web | refused update endpoints web | no response, the API server responded with 200 | 1-2"}},
		{"leases and events have their own tracks", func(x *historyBuilder) {
			x.request(1, "update", leases, "lock", nil)
			x.request(2, "create", "events.events.k8s.io", "", nil)
		}, []string{
			"s: leases | write update leases.coordination.k8s.io lock | no response recorded | 1-1",
			"s: events | write create events.events.k8s.io  | no response recorded | 2-2",
		}},
		{"a delivery starts at the commit", func(x *historyBuilder) {
			x.request(1, "watch", pods, "", nil)
			x.answer(1, 200)
			x.commit(history.Added, pod)
			x.delivery(1, pod)
		}, []string{
			"s: reads and watches | read watch pods  | 200 | 1-2",
			"pods of replicasets.apps web | commit ADDED pods web-1 | Pending | 3-3",
			"pods of replicasets.apps web | delivery MODIFIED pods web-1 | to s | 3-4",
		}},
		{"a delivery does not start before its watch", func(x *historyBuilder) {
			x.commit(history.Added, pod)
			x.request(1, "watch", pods, "", nil)
			x.answer(1, 200)
			x.delivery(1, pod)
		}, []string{
			"pods of replicasets.apps web | commit ADDED pods web-1 | Pending | 1-1",
			"s: reads and watches | read watch pods  | 200 | 2-3",
			"pods of replicasets.apps web | delivery MODIFIED pods web-1 | to s | 3-4",
		}},
		{"a delivery recorded before the commit has no lag", func(x *historyBuilder) {
			x.delivery(1, pod)
			x.commit(history.Added, pod)
		}, []string{
			"pods of replicasets.apps web | delivery MODIFIED pods web-1 | to s | 1-1",
			"pods of replicasets.apps web | commit ADDED pods web-1 | Pending | 2-2",
		}},
		{"bookmarks have no mark", func(x *historyBuilder) {
			x.add(history.Record{Delivery: &history.Delivery{Type: history.Bookmark, Resource: pods}})
		}, nil},
		{"a gap", func(x *historyBuilder) {
			x.add(history.Record{Gap: &history.Gap{Source: "commits of pods", Detail: "lost"}})
		}, []string{"gaps | gap gap commits of pods | lost | 1-1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newHistory()
			test.build(x)
			got := x.build(t)
			var lines []string
			for _, m := range got.Marks {
				lines = append(lines, markText(got, m))
			}
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTracks checks the order of the tracks. ReplicaSets follow their Deployment, Endpoints their
// Service, and pods their owner. Faults have the order of the scenario.
func TestTracks(t *testing.T) {
	x := newHistory()
	x.add(history.Record{Fault: &history.Fault{Index: 1, Name: "b", Event: history.FaultInjected}})
	x.add(history.Record{Fault: &history.Fault{Index: 0, Name: "a", Event: history.FaultInjected}})
	x.add(history.Record{Process: &history.Process{Name: "s", Event: history.ProcessStarted}})
	x.commit(history.Added, object(endpoints, "web", 1, nil, ``))
	x.commit(history.Added, object(replicaSets, "web-b", 2, &history.Owner{Kind: "Deployment", Name: "web"}, ``))
	x.commit(history.Added, object(pods, "web-b-1", 3, &history.Owner{Kind: "ReplicaSet", Name: "web-b"}, ``))
	x.commit(history.Added, object(replicaSets, "web-a", 4, &history.Owner{Kind: "Deployment", Name: "web"}, ``))
	x.commit(history.Added, object(deployments, "web", 5, nil, ``))
	x.commit(history.Added, object(services, "web", 6, nil, ``))
	x.commit(history.Added, object(controllers, "old", 7, nil, ``))
	x.commit(history.Added, object(pods, "alone", 8, nil, ``))
	got := x.build(t)
	var names []string
	for _, track := range got.Tracks {
		names = append(names, track.Group.String()+": "+track.Name)
	}
	want := []string{
		"run: process s", "run: fault 0: a", "run: fault 1: b",
		"objects: replicationcontrollers old",
		"objects: deployments.apps web", "objects: replicasets.apps web-a", "objects: replicasets.apps web-b", "objects: pods of replicasets.apps web-b",
		"objects: services web", "objects: endpoints web",
		"objects: pods of no owner",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tracks (-want +got):\n%s", diff)
	}
	if m := got.Marks[len(got.Marks)-1]; got.Tracks[m.Track].Name != "pods of no owner" {
		t.Errorf("a mark moved to the track %q", got.Tracks[m.Track].Name)
	}
}

// TestTracksOfAnyKind checks that objects of every Kind have tracks. Dependents follow their
// controller, in whatever order the objects occur in the history.
func TestTracksOfAnyKind(t *testing.T) {
	added := func(resource, name, kind, owner string) history.Record {
		o := object(resource, name, 1, nil, `{}`)
		if owner != "" {
			o.Owners = []history.Owner{{Kind: kind, Name: owner, UID: types.UID("u-" + owner), Controller: true}}
		}
		return history.Record{Commit: &history.Commit{Type: history.Added, Object: o}}
	}
	inNamespace := func(r history.Record, namespace string) history.Record {
		r.Commit.Object.Namespace = namespace
		return r
	}
	for _, test := range []struct {
		name    string
		records []history.Record
		want    []string
	}{
		{"a StatefulSet", []history.Record{
			added(statefulSets, "web", "", ""), added(revisions, "web-1", "StatefulSet", "web"), added(revisions, "web-2", "StatefulSet", "web"),
			added(pods, "web-0", "StatefulSet", "web"), added(pods, "web-1", "StatefulSet", "web"),
			added("persistentvolumeclaims", "data-web-0", "", ""),
		}, []string{
			"objects: persistentvolumeclaims data-web-0",
			"objects: statefulsets.apps web", "objects: pods of statefulsets.apps web", "objects: controllerrevisions.apps of statefulsets.apps web",
		}},
		{"a custom resource that controls workloads and routing", []history.Record{
			added("databases.example.com", "main", "", ""),
			added(services, "main-api", "Database", "main"), added("endpointslices.discovery.k8s.io", "main-api-x", "Service", "main-api"), added(endpoints, "main-api", "", ""),
			added(statefulSets, "main-data", "Database", "main"), added(pods, "main-data-0", "StatefulSet", "main-data"),
			added(deployments, "main-proxy", "Database", "main"), added(replicaSets, "main-proxy-1", "Deployment", "main-proxy"), added(pods, "main-proxy-1-x", "ReplicaSet", "main-proxy-1"),
			added("configmaps", "main", "Database", "main"), added(deployments, "other", "", ""),
		}, []string{
			"objects: databases.example.com main",
			"objects: configmaps main", "objects: deployments.apps main-proxy", "objects: statefulsets.apps main-data", "objects: pods of statefulsets.apps main-data",
			"objects: replicasets.apps main-proxy-1", "objects: pods of replicasets.apps main-proxy-1",
			"objects: services main-api", "objects: endpoints main-api", "objects: endpointslices.discovery.k8s.io main-api-x",
			"objects: deployments.apps other",
		}},
		{"dependents before their controllers", []history.Record{
			added(pods, "zz-0", "StatefulSet", "zz"), added(statefulSets, "zz", "Database", "main"), added("databases.example.com", "main", "", ""), added(deployments, "other", "", ""),
		}, []string{
			"objects: databases.example.com main", "objects: statefulsets.apps zz", "objects: pods of statefulsets.apps zz", "objects: deployments.apps other",
		}},
		{"pods of a custom resource", []history.Record{
			added("databases.example.com", "main", "", ""), added(pods, "main-0", "Database", "main"), added(pods, "other-0", "Cache", "other"), added(pods, "alone", "", ""),
		}, []string{
			"objects: databases.example.com main", "objects: pods of databases.example.com main", "objects: pods of Cache other", "objects: pods of no owner",
		}},
		{"owner references in a cycle", []history.Record{
			added("databases.example.com", "b", "Database", "a"), added("databases.example.com", "a", "Database", "b"),
		}, []string{"objects: databases.example.com b", "objects: databases.example.com a"}},
		{"cluster-scoped objects, events and other namespaces", []history.Record{
			inNamespace(added("nodes", "node-1", "", ""), ""), inNamespace(added("nodes", "node-2", "", ""), ""), inNamespace(added("regions.example.com", "north", "", ""), ""),
			added("events", "web.1", "", ""), inNamespace(added(pods, "dns", "", ""), "kube-system"),
		}, []string{
			"subject: nodes", "subject: events", "subject: other namespaces", "objects: regions.example.com north",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newHistory()
			for _, r := range test.records {
				x.add(r)
			}
			var names []string
			for _, track := range x.build(t).Tracks {
				names = append(names, track.Group.String()+": "+track.Name)
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("tracks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotes checks how the notes of marks describe objects, with and without a decoder for the
// Kind. A mark is one event on the timeline.
func TestNotes(t *testing.T) {
	for _, test := range []struct{ resource, body, want string }{
		{replicaSets, `{"spec":{"replicas":2},"status":{"replicas":1}}`, "spec.replicas: 2; status: 1 replicas, 0 ready, 0 available"},
		{statefulSets, `{"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":1}}`, "spec.replicas: 2; status: 2 replicas, 1 ready"},
		{"databases.example.com", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"False"}]}}`, "Running, Ready=True, Synced=False"},
		{"databases.example.com", `{"spec":{"replicas":"three"},"status":{"phase":{},"conditions":"fine"}}`, ""},
		{"databases.example.com", `{"spec":7,"status":[]}`, ""},
		{"configmaps", `{"data":{"key":"value"}}`, ""},
	} {
		x := newHistory()
		x.commit(history.Added, object(test.resource, "web", 1, nil, test.body))
		if got := x.build(t).Marks[0].Note; got != test.want {
			t.Errorf("%s %s: note %q, want %q", test.resource, test.body, got, test.want)
		}
	}
}

// TestBands checks that a fault's band ends when the fault is healed, and a process's band when
// the process ends. Without such a record, the band ends at the end of the history.
func TestBands(t *testing.T) {
	x := newHistory()
	for _, event := range []history.FaultEvent{history.FaultInjected, history.FaultFired, history.FaultHealed} {
		x.add(history.Record{Fault: &history.Fault{Name: "f", Event: event}})
	}
	for _, event := range []history.ProcessEvent{history.ProcessStarted, history.ProcessDied, history.ProcessStarted} {
		x.add(history.Record{Process: &history.Process{Name: "s", Event: event}})
	}
	x.add(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	got := x.build(t)
	for i := range got.Bands {
		got.Bands[i].Track = 0
	}
	want := []Band{
		{Kind: Fault, From: 1 * time.Second, To: 3 * time.Second, Note: "f"},
		{Kind: Process, From: 4 * time.Second, To: 5 * time.Second, Note: "s"},
		{Kind: Process, From: 6 * time.Second, To: 7 * time.Second, Note: "s"},
	}
	if diff := cmp.Diff(want, got.Bands); diff != "" {
		t.Errorf("bands (-want +got):\n%s", diff)
	}
}

// TestViolations checks violations whose evidence cites a response or a list. They must lead to the
// mark of the request. The timeline must keep the cited records.
func TestViolations(t *testing.T) {
	x := newHistory()
	x.request(1, "list", pods, "", nil)
	x.answer(1, 200)
	list := x.add(history.Record{List: &history.List{ID: 1, Resource: pods}})
	x.request(2, "create", pods, "", nil)
	answer := x.answer(2, 201)
	phase := x.add(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	got := x.build(t, check.Result{Check: "no-writes-when-settled", Verdict: check.Fail, Evidence: []check.Evidence{
		{Summary: "first", Records: []int64{list}}, {Summary: "second", Records: []int64{list, answer, phase}},
	}})
	want := []Violation{
		{Check: "no-writes-when-settled", Number: 1, Summary: "first", Marks: []int{0}, Records: []int64{list}},
		{Check: "no-writes-when-settled", Number: 2, Summary: "second", Marks: []int{0, 1}, Records: []int64{list, answer, phase}},
	}
	if diff := cmp.Diff(want, got.Violations); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	if len(got.Cited) != 3 || !json.Valid(got.Cited[answer]) {
		t.Errorf("%d records are kept, %s for the response; want 3", len(got.Cited), got.Cited[answer])
	}
}

func TestCounts(t *testing.T) {
	deployment := history.Owner{Kind: "Deployment", Name: "web", UID: uid(deployments, "web")}
	set := history.Owner{Kind: "ReplicaSet", Name: "web-a", UID: uid(replicaSets, "web-a")}
	x := newHistory()
	x.commit(history.Added, object(deployments, "web", 1, nil, `{"spec":{"replicas":2}}`))           // at 1 s
	x.commit(history.Added, object(replicaSets, "web-a", 2, &deployment, `{"spec":{"replicas":2}}`)) // 2
	x.commit(history.Added, object(services, "web", 3, nil, `{"spec":{"selector":{"a":"b"}}}`))      // 3
	pod := object(pods, "web-a-1", 4, &set, readyPod)
	pod.Labels = map[string]string{"a": "b"}
	x.commit(history.Added, pod)                                                                                               // 4
	x.commit(history.Added, object(pods, "web-a-2", 5, &set, `{"status":{"phase":"Pending"}}`))                                // 5
	x.commit(history.Modified, object(endpoints, "web", 6, nil, `{"subsets":[{"addresses":[{}],"notReadyAddresses":[{}]}]}`))  // 6
	x.commit(history.Modified, object(deployments, "web", 7, nil, `{"spec":{"replicas":1},"status":{"availableReplicas":1}}`)) // 7
	pod.Labels = nil
	x.commit(history.Modified, pod)                                                               // 8: relabelled
	x.commit(history.Modified, object(pods, "web-a-2", 9, &set, `{"status":{"phase":"Failed"}}`)) // 9
	x.commit(history.Deleted, pod)                                                                // 10
	got := x.build(t)
	line := func(name string, pairs ...int) Line {
		l := Line{Name: name}
		for i := 0; i < len(pairs); i += 2 {
			l.At, l.Values = append(l.At, time.Duration(pairs[i])*time.Second), append(l.Values, float64(pairs[i+1]))
		}
		return l
	}
	want := map[string][]Line{
		"Pods of deployments.apps web": {
			line(desiredLine, 1, 2, 7, 1), line(existingLine, 1, 0, 4, 1, 5, 2, 9, 1, 10, 0), line(readyLine, 1, 0, 4, 1, 10, 0), line(availableLine, 1, 0, 7, 1),
		},
		"Endpoints web": {line(selectedLine, 3, 0, 4, 1, 8, 0), line(addressLine, 6, 1), line(notReadyLine, 6, 1)},
	}
	charts := map[string][]Line{}
	for _, c := range got.Charts {
		charts[c.Title] = c.Lines
	}
	if diff := cmp.Diff(want, charts); diff != "" {
		t.Errorf("charts (-want +got):\n%s", diff)
	}
}

// TestCountsOfAnyKind checks the charts of workloads and of custom resources. A pod counts for all
// objects that control it, directly or indirectly.
func TestCountsOfAnyKind(t *testing.T) {
	db := history.Owner{Kind: "Database", Name: "main", UID: uid("databases.example.com", "main")}
	set := history.Owner{Kind: "StatefulSet", Name: "main-data", UID: uid(statefulSets, "main-data")}
	x := newHistory()
	x.commit(history.Added, object(statefulSets, "main-data", 1, &db, `{"spec":{"replicas":1},"status":{"availableReplicas":0}}`)) // at 1 s
	x.commit(history.Added, object("databases.example.com", "main", 2, nil, `{"spec":{"replicas":1}}`))                            // 2
	x.commit(history.Added, object("databases.example.com", "empty", 3, nil, `{"spec":{"replicas":1}}`))                           // 3
	x.commit(history.Added, object(pods, "main-data-0", 4, &set, readyPod))                                                        // 4
	x.commit(history.Modified, object("databases.example.com", "main", 5, nil, `{"status":{"readyReplicas":1}}`))                  // 5
	x.commit(history.Modified, object("databases.example.com", "main", 6, nil, `{}`))                                              // 6
	x.commit(history.Modified, object(statefulSets, "main-data", 7, nil, `{"spec":{"replicas":1}}`))                               // 7: released
	x.commit(history.Deleted, object(statefulSets, "main-data", 8, nil, `{"spec":{"replicas":1}}`))                                // 8
	x.commit(history.Deleted, object(pods, "main-data-0", 9, &set, readyPod))                                                      // 9
	line := func(name string, pairs ...int) Line {
		l := Line{Name: name}
		for i := 0; i < len(pairs); i += 2 {
			l.At, l.Values = append(l.At, time.Duration(pairs[i])*time.Second), append(l.Values, float64(pairs[i+1]))
		}
		return l
	}
	want := []Chart{
		{Title: "Pods of statefulsets.apps main-data", Lines: []Line{
			line(desiredLine, 1, 1, 8, 0), line(existingLine, 1, 0, 4, 1, 9, 0), line(readyLine, 1, 0, 4, 1, 9, 0), line(availableLine, 1, 0),
		}},
		{Title: "Pods of databases.example.com main", Lines: []Line{
			line(desiredLine, 2, 1, 5, 0), line(existingLine, 2, 0, 4, 1, 7, 0), line(readyLine, 2, 0, 4, 1, 7, 0), line(statusReadyLine, 5, 1, 6, 0),
		}},
	}
	if diff := cmp.Diff(want, x.build(t).Charts); diff != "" {
		t.Errorf("charts (-want +got):\n%s", diff)
	}
}

// TestEventRates checks the charts of lag and requests. In each time slice, they show the longest
// lag and the requests per second.
func TestEventRates(t *testing.T) {
	p := newEventRates()
	p.delivered(10*time.Millisecond, pods, 2*time.Millisecond)
	p.delivered(20*time.Millisecond, pods, 7*time.Millisecond)
	p.delivered(120*time.Millisecond, pods, time.Millisecond)
	p.answered(&Mark{Kind: Write, From: 60 * time.Millisecond})
	p.answered(&Mark{Kind: Write, From: 70 * time.Millisecond})
	got := p.charts(time.Second)
	want := []Chart{
		{Title: "Lag of watch events", Unit: "ms", Lines: []Line{
			{Name: pods, At: []time.Duration{0, minSlice, 2 * minSlice, 3 * minSlice}, Values: []float64{7, 0, 1, 0}},
		}},
		{Title: "Requests of the subject", Unit: "/s", Lines: []Line{
			{Name: "write", At: []time.Duration{0, minSlice, 2 * minSlice}, Values: []float64{0, 40, 0}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("charts (-want +got):\n%s", diff)
	}
}

// TestBrokenHistories checks that a truncated history is shown up to its end. Other broken
// histories must be errors.
func TestBrokenHistories(t *testing.T) {
	ends := func(with error) iter.Seq2[*history.Record, error] {
		return func(yield func(*history.Record, error) bool) {
			for _, r := range newHistory().records {
				if !yield(r, nil) {
					return
				}
			}
			yield(nil, with)
		}
	}
	got, err := Build(ends(fmt.Errorf("line 2: %w", history.ErrTruncated)), nil)
	if err != nil || got.Omitted == "" {
		t.Errorf("a truncated history: %v, omitted %q", err, got.Omitted)
	}
	bad := errors.New("no such file")
	if _, err := NewDraft(ends(bad)).Finish(nil, nil); !errors.Is(err, bad) {
		t.Errorf("a draft: error %v; want %v", err, bad)
	}
	if _, err := Build(ends(bad), nil); !errors.Is(err, bad) {
		t.Errorf("error %v; want %v", err, bad)
	}
	x := newHistory()
	x.commit(history.Added, object(pods, "web", 1, nil, `{"status":7}`))
	if _, err := Build(x.all(), nil); err == nil {
		t.Error("no error for an object that is none")
	}
}

func uid(resource, name string) types.UID { return types.UID(resource + "/" + name) }
