package reports

import (
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// TestUndecided checks for which runs one reason explains the verdicts of all checks. The terminal
// must show such a reason only once.
func TestUndecided(t *testing.T) {
	const reason = "the run: the subject did not start"
	unknown := func(id, reason string) check.Result {
		return check.Result{Check: id, Verdict: check.Unknown, Reason: reason}
	}
	withEvidence := unknown("status", reason)
	withEvidence.Evidence = []check.Evidence{{Summary: "a write", Records: []int64{1}}}
	for _, test := range []struct {
		name    string
		results []check.Result
		want    bool
	}{
		{"the same reason", []check.Result{unknown("ownership", reason), unknown("status", reason)}, true},
		{"checks of other controllers", []check.Result{unknown("ownership", reason), unknown("status", reason), {Check: "max-surge", Verdict: check.NotExercised, Reason: check.InapplicablePrefix + "x"}}, true},
		{"two reasons", []check.Result{unknown("ownership", reason), unknown("status", "another")}, false},
		{"one passed", []check.Result{unknown("ownership", reason), {Check: "status", Verdict: check.Pass}}, false},
		{"evidence", []check.Result{unknown("ownership", reason), withEvidence}, false},
		{"no checks", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := Run{Scenario: "burst", Verdict: check.Unknown, Reason: reason, Directory: "out/burst", Results: test.results}
			if got := run.Undecided(); got != test.want {
				t.Fatalf("Undecided() = %t, want %t", got, test.want)
			}
			var text strings.Builder
			if err := Terminal(&text, []Run{run}, 0); err != nil {
				t.Fatal(err)
			}
			if once := strings.Count(text.String(), reason) == 1; test.want && (!once || !strings.Contains(text.String(), "all 2 checks")) {
				t.Errorf("the terminal shows %q, want the reason once", text.String())
			}
		})
	}
}
