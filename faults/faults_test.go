package faults_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// recording is a Recorder that keeps all records in memory.
type recording struct{ records []history.Record }

func (r *recording) Append(record history.Record) { r.records = append(r.records, record) }

// fakeFault is a fault whose Inject and Heal return the given errors.
type fakeFault struct{ inject, heal error }

func (f *fakeFault) Inject(_ context.Context, env *faults.Env) error {
	if f.inject == nil {
		env.Report.Fired(7, &history.Ref{Resource: "pods", Name: "web"}, "bang")
	}
	return f.inject
}
func (f *fakeFault) Heal(context.Context) error { return f.heal }
func (f *fakeFault) Summary() string            { return "1 bang" }

// TestRecordOrder checks the order of a fault's history records: injected, fired, healed. The
// "healed" record must appear only once, and only after Heal has succeeded.
func TestRecordOrder(t *testing.T) {
	injected := history.Fault{Index: 3, Name: "faulty", Event: history.FaultInjected}
	fired := history.Fault{
		Index: 3, Name: "faulty", Event: history.FaultFired, Request: 7,
		Object: &history.Ref{Resource: "pods", Name: "web"}, Detail: "bang",
	}
	failed := func(detail string) history.Fault {
		return history.Fault{Index: 3, Name: "faulty", Event: history.FaultFailed, Detail: detail}
	}
	healed := history.Fault{Index: 3, Name: "faulty", Event: history.FaultHealed, Detail: "1 bang"}
	tests := []struct {
		name  string
		fault fakeFault
		want  []history.Fault
	}{
		{"injected and healed", fakeFault{}, []history.Fault{injected, fired, healed}},
		{"not injected", fakeFault{inject: errors.New("no")}, []history.Fault{injected, failed("injecting fault 3 (faulty): no"), healed}},
		{
			"not healed", fakeFault{heal: errors.New("no")},
			[]history.Fault{injected, fired, failed("healing fault 3 (faulty): no"), failed("healing fault 3 (faulty): no")},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var r recording
			env := &faults.Env{Report: faults.NewReporter(&r, 3, "faulty")}
			if err := faults.Inject(t.Context(), &test.fault, env); !errors.Is(err, test.fault.inject) {
				t.Errorf("unexpected error %v", err)
			}
			for range 2 {
				if err := faults.Heal(t.Context(), &test.fault, env); !errors.Is(err, test.fault.heal) {
					t.Errorf("unexpected error %v", err)
				}
			}
			var got []history.Fault
			for _, record := range r.records {
				got = append(got, *record.Fault)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTolerateOutage checks that a Reporter ignores errors of an unavailable control plane after
// a call of TolerateOutage. Without the call, the Reporter must record these errors. It must
// always record other errors.
func TestTolerateOutage(t *testing.T) {
	for _, tolerate := range []bool{false, true} {
		var r recording
		report := faults.NewReporter(&r, 0, "faulty")
		if tolerate {
			report.TolerateOutage()
		}
		report.Failed(nil, errors.New("not allowed"))
		report.Failed(nil, apierrors.NewServiceUnavailable("etcd is down"))
		if want := map[bool]int{false: 2, true: 1}[tolerate]; len(r.records) != want {
			t.Errorf("outage tolerated %t: %d records, want %d", tolerate, len(r.records), want)
		}
	}
}

func TestOneOf(t *testing.T) {
	params, err := scenario.ParseParams("s.yaml", "fault", []byte("verb: get\nsize: big\n"))
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"small", "large"}
	tests := []struct{ field, value, want string }{
		{"size", "large", ""},
		{"size", "big", `s.yaml:2:7: fault.size: unknown value "big"; expected one of small, large`},
		{"color", "", `s.yaml: fault.color: not given; expected one of small, large`},
	}
	for _, test := range tests {
		got := ""
		if err := faults.OneOf(params, test.field, test.value, known); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s %q: error %q, want %q", test.field, test.value, got, test.want)
		}
	}
}
