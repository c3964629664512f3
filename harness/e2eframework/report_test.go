package e2eframework

import (
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestProblems requires that a test fails for violations and for faults without an effect.
func TestProblems(t *testing.T) {
	count := func(name string, injected, fired int) check.FaultCount {
		return check.FaultCount{Name: name, Injected: injected, Fired: fired}
	}
	violated := []check.Result{
		{Check: "ownership", Verdict: check.Pass},
		{Check: "back-off", Verdict: check.Fail, Reason: "violated once", Evidence: []check.Evidence{{Summary: "99 creates in 1 s", Expected: "fewer"}}},
	}
	for _, test := range []struct {
		name   string
		result reports.Run
		want   string
	}{
		{name: "nothing injected", result: reports.Run{Verdict: check.Unknown, Reason: "no fault was injected"}},
		{name: "one of two fired", result: reports.Run{Faults: []check.FaultCount{count("crash", 1, 0), count("api-error", 1, 3)}}},
		{name: "none fired", result: reports.Run{Reason: "no injected fault had an effect (1 injected)", Faults: []check.FaultCount{count("crash", 1, 0)}},
			want: "the feature was not tested under faults: no injected fault had an effect (1 injected)"},
		{name: "must fire", result: reports.Run{Faults: []check.FaultCount{{Name: "crash", MustFire: true}, count("api-error", 1, 3)}},
			want: "fault crash has mustFire, but had no effect"},
		{name: "a violation", result: reports.Run{Results: violated, Faults: []check.FaultCount{count("api-error", 1, 3)}},
			want: "check back-off: violated once\n    at 0.000s  99 creates in 1 s\n    expected: fewer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(append(violations(&test.result), withoutEffect(&test.result)...), "\n"); got != test.want {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}
