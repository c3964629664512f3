package history

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	pod := Object{Ref: Ref{Resource: "pods", Name: "web-1"}}
	for _, test := range []struct {
		name   string
		record Record
		want   string
	}{
		{"a commit", Record{Commit: &Commit{Type: Added, Object: pod}}, ""},
		{"a commit of an unknown type", Record{Commit: &Commit{Type: "FOO", Object: pod}}, `commit.type: found "FOO"; expected one of ADDED, MODIFIED, DELETED`},
		{"a commit of a bookmark", Record{Commit: &Commit{Type: Bookmark, Object: pod}}, `commit.type: found "BOOKMARK"; expected one of ADDED, MODIFIED, DELETED`},
		{"a commit without an object", Record{Commit: &Commit{Type: Added}}, "commit.object: found no resource; expected one, such as pods"},
		{"a commit without a name", Record{Commit: &Commit{Type: Added, Object: Object{Ref: Ref{Resource: "pods"}}}}, "commit.object: found no name of the object; expected one"},
		{"a delivery", Record{Delivery: &Delivery{Type: Modified, Object: pod}}, ""},
		{"a bookmark", Record{Delivery: &Delivery{Type: Bookmark, Object: Object{Ref: Ref{Version: 3}}}}, ""},
		{"an error event", Record{Delivery: &Delivery{Type: Error}}, ""},
		{"a delivery without an object", Record{Delivery: &Delivery{Type: Deleted}}, "delivery.object: found no resource; expected one, such as pods"},
		{"a delivery of an unknown type", Record{Delivery: &Delivery{Type: "added", Object: pod}}, `delivery.type: found "added"; expected one of ADDED, MODIFIED, DELETED, BOOKMARK, ERROR`},
		{"a phase", Record{Phase: &Phase{Name: PhaseQuiet}}, ""},
		{"an unknown phase", Record{Phase: &Phase{Name: "nap"}}, `phase.name: found "nap"; expected one of chaos, settle, quiet, end`},
		{"an unknown fault event", Record{Fault: &Fault{Event: "x"}}, `fault.event: found "x"; expected one of injected, fired, healed, failed`},
		{"an unknown step event", Record{Step: &Step{Event: "x"}}, `step.event: found "x"; expected one of begun, late, done, failed`},
		{"an unknown process event", Record{Process: &Process{Event: "x"}}, `process.event: found "x"; expected one of started, stopped, died, paused, resumed`},
		{"a response", Record{Response: &Response{Code: 0, ServerCode: 201}}, ""},
		{"a negative status", Record{Response: &Response{Code: -1}}, "response.code: found -1; expected an HTTP status, or 0 for no response"},
		{"a large status", Record{Response: &Response{Code: 200, ServerCode: 600}}, "response.serverCode: found 600; expected an HTTP status, or 0 for no response"},
		{"a negative fault", Record{Fault: &Fault{Index: -1, Event: FaultFired}}, "fault.index: found -1; expected the position in the scenario, from 0"},
		{"a negative step", Record{Step: &Step{Index: -1, Event: StepDone}}, "step.index: found -1; expected the position in the scenario, from 0"},
		{"a request", Record{Request: &Request{Verb: "deletecollection"}}, ""},
		{"an unknown verb", Record{Request: &Request{Verb: "eat"}}, `request.verb: found "eat"; expected one of ` + strings.Join(verbs, ", ")},
		{"a negative delay", Record{Delivery: &Delivery{Type: Added, Object: pod, Held: -5}}, "delivery.held: found -5; expected a number of nanoseconds, 0 or more"},
		{"a negative stall", Record{Stall: &Stall{Duration: -5}}, "stall.lasted: found -5; expected a number of nanoseconds, 0 or more"},
		{"a second start", Record{Seq: 2, Start: &Start{Format: Format}}, "found a second start record; expected one at the beginning of the history"},
	} {
		got := ""
		if err := test.record.validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: error %q, want %q", test.name, got, test.want)
		}
	}
}
