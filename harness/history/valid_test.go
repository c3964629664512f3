package history

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	pod := Object{Ref: Ref{Resource: "pods", Name: "web-1", Version: 5}}
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
		{"a bookmark without a version", Record{Delivery: &Delivery{Type: Bookmark}}, "delivery.object.version: found 0; expected the resourceVersion of the bookmark"},
		{"an error event", Record{Delivery: &Delivery{Type: Error}}, ""},
		{"a delivery without an object", Record{Delivery: &Delivery{Type: Deleted}}, "delivery.object: found no resource; expected one, such as pods"},
		{"a delivery of an unknown type", Record{Delivery: &Delivery{Type: "added", Object: pod}}, `delivery.type: found "added"; expected one of ADDED, MODIFIED, DELETED, BOOKMARK, ERROR`},
		{"a phase", Record{Phase: &Phase{Name: PhaseQuiet}}, ""},
		{"an unknown phase", Record{Phase: &Phase{Name: "nap"}}, `phase.name: found "nap"; expected one of chaos, settle, quiet, end`},
		{"an unknown fault event", Record{Fault: &Fault{Event: "x"}}, `fault.event: found "x"; expected one of injected, fired, healed, failed`},
		{"an unknown step event", Record{Step: &Step{Event: "x"}}, `step.event: found "x"; expected one of begun, late, done, failed`},
		{"an unknown process event", Record{Process: &Process{Name: "subject-0", Event: "x"}}, `process.event: found "x"; expected one of started, stopped, died, paused, resumed`},
		{"a response", Record{Response: &Response{Code: 0, ServerCode: 201}}, ""},
		{"a negative status", Record{Response: &Response{Code: -1}}, "response.code: found -1; expected an HTTP status, or 0 for no response"},
		{"a large status", Record{Response: &Response{Code: 200, ServerCode: 600}}, "response.serverCode: found 600; expected an HTTP status, or 0 for no response"},
		{"a negative fault", Record{Fault: &Fault{Index: -1, Event: FaultFired}}, "fault.index: found -1; expected the position in the scenario, from 0"},
		{"a negative step", Record{Step: &Step{Index: -1, Event: StepDone}}, "step.index: found -1; expected the position in the scenario, from 0"},
		{"a request", Record{Request: &Request{Subject: "subject-0", Verb: "deletecollection"}}, ""},
		{"an unknown verb", Record{Request: &Request{Subject: "subject-0", Verb: "eat"}}, `request.verb: found "eat"; expected one of ` + strings.Join(verbs, ", ")},
		{"a negative delay", Record{Delivery: &Delivery{Type: Added, Object: pod, Held: -5}}, "delivery.held: found -5; expected a number of nanoseconds, 0 or more"},
		{"a negative CPU time", Record{Process: &Process{Name: "subject-0", Event: ProcessStopped, Usage: &Usage{CPU: -5}}}, "process.usage.cpu: found -5; expected a number of nanoseconds, 0 or more"},
		{"negative memory", Record{Process: &Process{Name: "subject-0", Event: ProcessStopped, Usage: &Usage{PeakMemory: -1}}}, "process.usage.peakMemory: found -1; expected a number of bytes, 0 or more"},
		{"a negative stall", Record{Stall: &Stall{Duration: -5}}, "stall.lasted: found -5; expected a number of nanoseconds, 0 or more"},
		{"negative bytes of a request", Record{Request: &Request{Subject: "subject-0", Verb: "get", Bytes: -1}}, "request.bytes: found -1; expected a number of bytes, 0 or more"},
		{"negative bytes of a response", Record{Response: &Response{Code: 200, Bytes: -1}}, "response.bytes: found -1; expected a number of bytes, 0 or more"},
		{"negative bytes of an event", Record{Delivery: &Delivery{Type: Added, Object: pod, Bytes: -1}}, "delivery.bytes: found -1; expected a number of bytes, 0 or more"},
		{"a request of nobody", Record{Request: &Request{Verb: "get"}}, "request.subject: found none; expected the name of the process that sent the request, such as subject-0"},
		{"a process without a name", Record{Process: &Process{Event: ProcessStarted}}, "process.name: found none; expected the name of a process, such as subject-0"},
		{"a commit without a version", Record{Commit: &Commit{Type: Added, Object: Object{Ref: Ref{Resource: "pods", Name: "web-1"}}}}, "commit.object.version: found 0; expected the resourceVersion of pods web-1"},
		{"a negative generation", Record{Commit: &Commit{Type: Added, Object: Object{Ref: pod.Ref, Generation: -1}}}, "commit.object.generation: found -1; expected 0 or more"},
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
