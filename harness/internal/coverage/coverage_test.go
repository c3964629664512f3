package coverage_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
)

// records returns an iterator over records. If err is not nil, the iterator yields err at the
// end.
func records(err error, records ...history.Record) func(func(*history.Record, error) bool) {
	return func(yield func(*history.Record, error) bool) {
		for i := range records {
			if !yield(&records[i], nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func request(id uint64, verb, resource string) history.Record {
	return history.Record{Request: &history.Request{ID: id, Subject: "subject-0", Verb: verb, Resource: resource}}
}

func fired(name string, id uint64) history.Record {
	return history.Record{Fault: &history.Fault{Name: name, Event: history.FaultFired, Request: id}}
}

func answered(r history.Response) history.Record { return history.Record{Response: &r} }

func process(event history.ProcessEvent) history.Record {
	return history.Record{Process: &history.Process{Name: "subject-0", Event: event}}
}

func commit(eventType history.EventType, resource, body string) history.Record {
	return history.Record{Commit: &history.Commit{Type: eventType, Object: history.Object{
		Ref: history.Ref{Resource: resource, Name: "web", UID: "u", Version: 7}, Body: json.RawMessage(body)}}}
}

// TestAdd requires the right counts after a history in which a fault of each type acts.
func TestAdd(t *testing.T) {
	const rolling = `{"spec":{"replicas":2},"status":{"replicas":2,"updatedReplicas":1,"availableReplicas":2}}`
	pod := &history.Ref{Resource: "pods", Name: "a"}
	var table coverage.Table
	err := table.Add(records(nil,
		process(history.ProcessStarted),
		request(1, "list", "pods"), fired("stale-list", 1), answered(history.Response{ID: 1, Code: 200, ServerCode: 200, Reached: true, Fault: "stale-list"}),
		request(2, "watch", "pods"), answered(history.Response{ID: 2, Code: 200, ServerCode: 200, Reached: true}),
		fired("restart", 0),
		request(3, "create", "pods"), // the first write ends the start-up of the replica
		fired("response-lost", 3), answered(history.Response{ID: 3, ServerCode: 201, Reached: true, Fault: "response-lost"}),
		commit(history.Added, "replicasets.apps", `{"spec":{"replicas":3},"status":{"replicas":1}}`),
		request(4, "create", "pods"), fired("api-error", 4), answered(history.Response{ID: 4, Code: 500, Fault: "api-error"}),
		commit(history.Modified, "deployments.apps", rolling),
		fired("watch-delay", 2), fired("watch-delay", 2),
		history.Record{Fault: &history.Fault{Name: "pod-churn", Event: history.FaultFired, Object: pod}},
		history.Record{Fault: &history.Fault{Name: "pod-churn", Event: history.FaultHealed, Object: pod}},
		commit(history.Deleted, "deployments.apps", rolling),
		commit(history.Modified, "replicasets.apps", `{"spec":{"replicas":3},"status":{"replicas":3}}`),
		request(5, "update", "endpoints"), fired("request-reset", 5), answered(history.Response{ID: 5, Fault: "request-reset"}),
		process(history.ProcessStarted),
		request(6, "update", "endpoints"), fired("name-taken", 6), fired("request-hang", 6),
	))
	if err != nil {
		t.Fatal(err)
	}
	cell := func(fault, verb, resource, outcome string, phase coverage.Phase, times int) coverage.Count {
		return coverage.Count{Cell: coverage.Cell{Fault: fault, Verb: verb, Resource: resource, Outcome: outcome, Phase: phase}, Times: times}
	}
	want := []coverage.Count{
		cell("api-error", "create", "pods", "refused, 500", coverage.Scale, 1),
		cell("name-taken", "update", "endpoints", "never answered", coverage.Steady, 1),
		cell("pod-churn", "", "pods", "pod-churn", coverage.Rollout, 1),
		cell("request-hang", "update", "endpoints", "never answered", coverage.Steady, 1),
		cell("request-reset", "update", "endpoints", "broken off", coverage.Steady, 1),
		cell("response-lost", "create", "pods", "done, no answer", coverage.Steady, 1),
		cell("restart", "", "", "restart", coverage.StartUp, 1),
		cell("stale-list", "list", "pods", "passed", coverage.StartUp, 1),
		cell("watch-delay", "watch", "pods", "watch-delay", coverage.Rollout, 2),
	}
	if diff := cmp.Diff(want, table.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		fault, verb, resource string
		want                  int
	}{
		{"watch-delay", "", "pods", 2}, {"watch-delay", "", "", 2}, {"watch-delay", "", "services", 0},
		{"api-error", "create", "pods", 1}, {"api-error", "delete", "pods", 0}, {"freeze", "", "", 0},
	} {
		if got := table.Seen(test.fault, test.verb, test.resource); got != test.want {
			t.Errorf("Seen returned %d for %+v", got, test)
		}
	}
}

// TestGenericPhases requires the right phase for a fault that acts while a generic object is
// changing. Package objects has no Go type for the kind of a generic object.
func TestGenericPhases(t *testing.T) {
	tests := []struct {
		resource, body string
		want           coverage.Phase
	}{
		{"statefulsets.apps", `{"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":2}}`, coverage.Scale},
		{"statefulsets.apps", `{"spec":{"replicas":3},"status":{"observedGeneration":1,"replicas":3}}`, coverage.Rollout},
		{"statefulsets.apps", `{"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3}}`, coverage.Steady},
		{"policies.example.com", `{"spec":{},"status":{"observedGeneration":1}}`, coverage.Rollout},
		{"policies.example.com", `{"spec":{"strict":true}}`, coverage.Steady},
		{"policies.example.com", ``, coverage.Steady},
		{"services", `{"spec":{"replicas":3}}`, coverage.Steady},
	}
	for _, test := range tests {
		object := commit(history.Added, test.resource, test.body)
		object.Commit.Object.Generation = 2
		var table coverage.Table
		err := table.Add(records(nil, request(1, "create", "pods"), object, fired("restart", 0)))
		if counts := table.Counts(); err != nil || len(counts) != 1 || counts[0].Phase != test.want {
			t.Errorf("%s %s: %v, error %v; want phase %s", test.resource, test.body, counts, err, test.want)
		}
	}
}

// TestStartUp requires that the phase start-up ends with the first write of a replica. A
// restart begins the phase again.
func TestStartUp(t *testing.T) {
	var table coverage.Table
	err := table.Add(records(nil,
		process(history.ProcessStarted), request(1, "create", "pods"), fired("f", 1), answered(history.Response{ID: 1, Code: 201, ServerCode: 201, Reached: true}),
		process(history.ProcessDied), process(history.ProcessStarted),
		request(2, "list", "pods"), fired("f", 2), answered(history.Response{ID: 2, Code: 200, ServerCode: 200, Reached: true}),
	))
	if err != nil {
		t.Fatal(err)
	}
	var phases []coverage.Phase
	for _, count := range table.Counts() {
		phases = append(phases, count.Phase)
	}
	if diff := cmp.Diff([]coverage.Phase{coverage.Steady, coverage.StartUp}, phases); diff != "" {
		t.Errorf("phases of the create and the list (-want +got):\n%s", diff)
	}
}

// TestTruncated requires that Add counts all complete records of a truncated history.
func TestTruncated(t *testing.T) {
	var table coverage.Table
	err := table.Add(records(history.ErrTruncated, fired("restart", 0)))
	if !errors.Is(err, history.ErrTruncated) || table.Seen("restart", "", "") != 1 {
		t.Errorf("error %v, seen %d; want the history's, and once", err, table.Seen("restart", "", ""))
	}
}

// TestJSON requires that UnmarshalJSON restores the table that MarshalJSON wrote.
func TestJSON(t *testing.T) {
	var table, read coverage.Table
	if err := table.Add(records(nil, fired("restart", 0), fired("freeze", 0))); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&table)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table.Counts(), read.Counts()); diff != "" || table.Sum() != read.Sum() {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		`{"format":1,"cells":[{"fault":"x","times":-2}]}`: "cells[0].times: found -2; expected at least 1",
		`{"format":1,"cell":[]}`:                          `unknown field "cell"`,
	} {
		if err := json.Unmarshal([]byte(text), new(coverage.Table)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q", text, err, want)
		}
	}
	if err := json.Unmarshal([]byte(`{"format":2}`), &read); err == nil || !strings.Contains(err.Error(), "found a coverage table in format version 2; expected version 1") {
		t.Errorf("a table of a later format: error %v", err)
	}
	if err := read.Add(records(nil, fired("restart", 0))); err != nil || read.Seen("restart", "", "") != 2 || read.Sum() == table.Sum() {
		t.Errorf("seen %d times after more, sum %s, error %v", read.Seen("restart", "", ""), read.Sum(), err)
	}
}

func TestWriteText(t *testing.T) {
	var table coverage.Table
	err := table.Add(records(nil, fired("restart", 0), fired("restart", 0), request(1, "create", "pods"), fired("restart", 0)))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := table.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	const want = `
┌─────────┬──────┬──────────┬─────────┬──────────┬─────────┬───────┬────────┐
│ FAULT   │ VERB │ RESOURCE │ OUTCOME │ START-UP │ ROLLOUT │ SCALE │ STEADY │
├─────────┼──────┼──────────┼─────────┼──────────┼─────────┼───────┼────────┤
│ restart │      │          │ restart │        2 │       · │     · │      1 │
└─────────┴──────┴──────────┴─────────┴──────────┴─────────┴───────┴────────┘
`
	if got := "\n" + text.String(); got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}
