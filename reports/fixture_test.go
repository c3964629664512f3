package reports

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// historyBuilder builds a history for tests.
type historyBuilder struct{ records []history.Record }

// add appends a record with the given time and returns the record's number (Seq).
func (s *historyBuilder) add(at time.Duration, r history.Record) int64 {
	r.Seq, r.At = int64(len(s.records)+1), at
	s.records = append(s.records, r)
	return r.Seq
}

// write writes the history to history.jsonl in a directory.
func (s *historyBuilder) write(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	encoder := json.NewEncoder(file)
	for _, r := range s.records {
		if err := encoder.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
}

// laggingRun returns a run in which a fault delays the watch events of pods. Because of the delay,
// the controllers under test create one pod too many. The history has about ten records for each
// pod.
func laggingRun(t *testing.T, pods int) Run {
	t.Helper()
	dir := t.TempDir()
	s := new(historyBuilder)
	tick := time.Millisecond
	at := func(i int) time.Duration { return 100*tick + time.Duration(i)*tick }
	s.add(0, history.Record{Start: &history.Start{Format: history.Format, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Scenario: "lagging", Seed: 42, Subject: "ours", Provider: "embedded", Namespace: "gauntlet"}})
	s.add(tick, history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStarted, PID: 7}})
	s.add(2*tick, history.Record{Request: &history.Request{ID: 1, Subject: "subject-0", Verb: "watch", Resource: "pods"}})
	s.add(3*tick, history.Record{Response: &history.Response{ID: 1, Code: 200, ServerCode: 200, Reached: true}})
	s.add(4*tick, history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	s.add(5*tick, history.Record{Fault: &history.Fault{Name: "watch-delay", Event: history.FaultInjected}})
	s.add(6*tick, history.Record{Step: &history.Step{Event: history.StepBegun, Detail: fmt.Sprintf("create ReplicaSet web with %d replicas", pods)}})
	owner := history.Object{
		Ref:        history.Ref{Resource: "replicasets.apps", Namespace: "gauntlet", Name: "web", UID: "u-web", Version: 10},
		Generation: 1, Body: json.RawMessage(fmt.Sprintf(`{"spec":{"replicas":%d},"status":{"replicas":0}}`, pods)),
	}
	s.add(7*tick, history.Record{Commit: &history.Commit{Type: history.Added, Object: owner}})
	s.add(8*tick, history.Record{Step: &history.Step{Event: history.StepDone, Detail: "created"}})
	var first, last int64
	for i := range pods + 1 {
		last = s.pod(at(i), i)
		if i == 0 {
			first = last
		}
	}
	end := at(pods) + time.Second
	s.add(end, history.Record{Fault: &history.Fault{Name: "watch-delay", Event: history.FaultHealed}})
	s.add(end, history.Record{Phase: &history.Phase{Name: history.PhaseSettle}})
	s.add(end+tick, history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	s.write(t, dir)
	for _, name := range []string{"logs", "diagnostics"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"scenario.yaml": "name: lagging\n", "diagnostics/pending.txt": "0 of 3 pods ready\n", "logs/subject-0.log": "I0102 03:04:05.100000 1 x.go:1] started\nI0102 03:04:05.200000 1 x.go:1] done </script>\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := run("lagging", check.Fail, "1 of 1 checks failed", check.Result{
		Check: "expectations", Verdict: check.Fail, Reason: "found 1 violation; first: 1 pod create above the expected number", Exercised: pods, Violations: 1,
		Evidence: []check.Evidence{{Summary: "one create too many", Expected: "none", At: at(pods), Records: []int64{first, last}}},
	})
	r.Directory = dir
	return r
}

// pod adds the records of one pod: the creation, the status updates until readiness, and the
// delayed watch events. It returns the number (Seq) of the create request.
func (s *historyBuilder) pod(at time.Duration, i int) int64 {
	const micro = time.Microsecond
	id := uint64(100 + i)
	object := func(version int, body string) history.Object {
		return history.Object{
			Ref:    history.Ref{Resource: "pods", Namespace: "gauntlet", Name: fmt.Sprintf("web-%05d", i), UID: types.UID(fmt.Sprintf("u-%d", i)), Version: history.Version(20 + 3*i + version)},
			Owners: []history.Owner{{Kind: "ReplicaSet", Name: "web", UID: "u-web", Controller: true}}, Body: json.RawMessage(body),
		}
	}
	made, bound, ready := object(0, `{"status":{"phase":"Pending"}}`), object(1, `{"status":{"phase":"Pending"},"spec":{"nodeName":"node-1"}}`),
		object(2, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	asked := made
	asked.Ref = history.Ref{Resource: "pods", Namespace: "gauntlet"}
	asked.GenerateName = "web-"
	seq := s.add(at, history.Record{Request: &history.Request{ID: id, Subject: "subject-0", Verb: "create", Resource: "pods", Namespace: "gauntlet", Object: &asked}})
	s.add(at+100*micro, history.Record{Commit: &history.Commit{Type: history.Added, Object: made}})
	s.add(at+200*micro, history.Record{Response: &history.Response{ID: id, Code: 201, ServerCode: 201, Reached: true, Object: &made}})
	s.add(at+300*micro, history.Record{Commit: &history.Commit{Type: history.Modified, Object: bound}})
	s.add(at+400*micro, history.Record{Commit: &history.Commit{Type: history.Modified, Object: ready}})
	for k, o := range []history.Object{made, bound, ready} {
		kind := history.Modified
		if k == 0 {
			kind = history.Added
		}
		s.add(at+500*micro+time.Duration(k)*micro, history.Record{Delivery: &history.Delivery{ID: 1, Subject: "subject-0", Resource: "pods", Type: kind, Object: o, Held: 100 * micro}})
	}
	return seq
}

// databaseRun returns a run in which the controller of a custom resource is under test. The custom
// object controls a StatefulSet, a Service and two backups, and the StatefulSet is scaled twice.
func databaseRun(t *testing.T) Run {
	t.Helper()
	dir := t.TempDir()
	s := new(historyBuilder)
	tick := 20 * time.Millisecond
	now := time.Duration(0)
	version := history.Version(10)
	next := func(r history.Record) int64 { now += tick; return s.add(now, r) }
	object := func(resource, name, ownerKind, owner, body string) history.Object {
		version++
		o := history.Object{
			Ref:  history.Ref{Resource: resource, Namespace: "gauntlet", Name: name, UID: types.UID("u-" + resource + name), Version: version},
			Body: json.RawMessage(body),
		}
		if owner != "" {
			o.Owners = []history.Owner{{Kind: ownerKind, Name: owner, UID: types.UID("u-" + owner), Controller: true}}
		}
		return o
	}
	id := uint64(1)
	write := func(verb string, kind history.EventType, o history.Object) {
		id++
		next(history.Record{Request: &history.Request{ID: id, Subject: "subject-0", Verb: verb, Resource: o.Resource, Namespace: "gauntlet", Name: o.Name, Object: &o}})
		next(history.Record{Commit: &history.Commit{Type: kind, Object: o}})
		next(history.Record{Response: &history.Response{ID: id, Code: 200, ServerCode: 200, Reached: true, Object: &o}})
		next(history.Record{Delivery: &history.Delivery{ID: 1, Subject: "subject-0", Resource: o.Resource, Type: kind, Object: o}})
	}
	s.add(0, history.Record{Start: &history.Start{Format: history.Format, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Scenario: "database", Seed: 42, Subject: "exec:./operator", Provider: "embedded", Namespace: "gauntlet"}})
	next(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStarted, PID: 7}})
	next(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	next(history.Record{Fault: &history.Fault{Name: "api-error", Event: history.FaultInjected}})
	next(history.Record{Step: &history.Step{Event: history.StepBegun, Detail: "create Database main"}})
	database := func(phase, ready string) history.Object {
		o := object("databases.example.com", "main", "", "", fmt.Sprintf(`{"spec":{"replicas":3},"status":{"phase":%q,"conditions":[{"type":"Ready","status":%q}]}}`, phase, ready))
		o.UID = "u-main"
		return o
	}
	next(history.Record{Commit: &history.Commit{Type: history.Added, Object: database("Pending", "False")}})
	set := func(replicas, ready int) history.Object {
		o := object("statefulsets.apps", "main-data", "Database", "main", fmt.Sprintf(`{"spec":{"replicas":%d},"status":{"replicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`, replicas, ready, ready, ready))
		o.UID = "u-main-data"
		return o
	}
	write("create", history.Added, set(3, 0))
	write("create", history.Added, object("services", "main", "Database", "main", `{"spec":{"selector":{"app":"main"}}}`))
	next(history.Record{Commit: &history.Commit{Type: history.Added, Object: object("endpoints", "main", "", "", `{"subsets":[{"addresses":[{}]}]}`)}})
	next(history.Record{Commit: &history.Commit{Type: history.Added, Object: object("controllerrevisions.apps", "main-data-5d4f", "StatefulSet", "main-data", `{"revision":1}`)}})
	next(history.Record{Commit: &history.Commit{Type: history.Added, Object: object("persistentvolumeclaims", "data-main-data-0", "", "", `{"status":{"phase":"Bound"}}`)}})
	for i := range 3 {
		name := fmt.Sprintf("main-data-%d", i)
		for _, body := range []string{`{"status":{"phase":"Pending"}}`, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`} {
			next(history.Record{Commit: &history.Commit{Type: history.Added, Object: object("pods", name, "StatefulSet", "main-data", body)}})
		}
		next(history.Record{Commit: &history.Commit{Type: history.Modified, Object: set(3, i+1)}})
	}
	write("update", history.Modified, database("Running", "True"))
	next(history.Record{Step: &history.Step{Event: history.StepDone, Detail: "created"}})
	for _, name := range []string{"main-x7k2p", "main-qq9zv"} {
		write("create", history.Added, object("backups.example.com", name, "Database", "main", `{"status":{"phase":"Running"}}`))
	}
	write("update", history.Modified, set(1, 1))
	next(history.Record{Commit: &history.Commit{Type: history.Deleted, Object: object("pods", "main-data-2", "StatefulSet", "main-data", `{"status":{"phase":"Running"}}`)}})
	next(history.Record{Fault: &history.Fault{Name: "api-error", Event: history.FaultHealed}})
	next(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	s.write(t, dir)
	r := withoutContract()
	r.Scenario, r.Subject, r.Directory, r.Controllers = "database", "exec:./operator", dir, []string{"endpoints-controller"}
	return r
}
