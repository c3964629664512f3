package check

import (
	"strings"
	"testing"
	"time"
)

// testSettings are the settings that most tests pass to the checks.
var testSettings = Settings{Within: 10 * time.Second, Quiet: 2 * time.Second, QPS: 500}

// verdictsWith runs all checks on a history, and returns their results by check ID.
func verdictsWith(t *testing.T, settings Settings, h *historyBuilder) map[string]Result {
	t.Helper()
	results, _, err := Run(settings, h.all())
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Result{}
	for _, r := range results {
		byID[r.Check] = r
	}
	return byID
}

// notFailed means, as the expected verdict of a test case, that both Pass and NotExercised are
// correct.
const notFailed Verdict = "not failed"

// testCase contains a history, and the verdict that one check must reach on this history.
type testCase struct {
	name  string
	build func(*historyBuilder)
	want  Verdict
	// evidence is text that the summary of the check's first evidence must contain.
	evidence string
}

// runTestCases runs test cases for the check with the given ID. If a test case does not expect a
// failure, no safety check may fail on its history.
func runTestCases(t *testing.T, id string, tests []testCase) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilder()
			test.build(h)
			test.verify(t, h, testSettings, id)
		})
	}
}

// verify ends the history and runs all checks. The check with the given ID must reach the
// expected verdict.
func (test testCase) verify(t *testing.T, h *historyBuilder, settings Settings, id string) {
	t.Helper()
	results := verdictsWith(t, settings, h.end())
	got := results[id]
	held := test.want == notFailed && (got.Verdict == Pass || got.Verdict == NotExercised)
	if got.Verdict != test.want && !held {
		t.Fatalf("%s: got %s (%s), want %s", id, got.Verdict, got.Reason, test.want)
	}
	if test.want == Fail {
		checkEvidence(t, h, got, test.evidence)
		return
	}
	for _, other := range results {
		if check, _ := Find(other.Check); other.Verdict == Fail && check.Property == Safety {
			t.Errorf("check %s fails, too: %s", other.Check, other.Reason)
		}
	}
}

// checkEvidence fails the test unless a failed check has evidence with the expected summary. The
// evidence must name records that exist in the history.
func checkEvidence(t *testing.T, h *historyBuilder, got Result, want string) {
	t.Helper()
	if len(got.Evidence) == 0 || got.Violations == 0 {
		t.Fatal("the check failed without evidence")
	}
	first := got.Evidence[0]
	if !strings.Contains(first.Summary, want) {
		t.Errorf("evidence %q, want it to contain %q", first.Summary, want)
	}
	if len(first.Records) == 0 {
		t.Error("evidence without records")
	}
	for _, seq := range first.Records {
		if seq < 1 || seq > int64(len(h.records)) {
			t.Errorf("evidence with record %d of %d", seq, len(h.records))
		}
	}
}
