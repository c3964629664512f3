package check

import (
	"strings"
	"testing"
	"time"
)

// testSettings is what stories are judged under.
var testSettings = Settings{Within: 10 * time.Second, Quiet: 2 * time.Second, QPS: 500}

// verdicts judges a history that must be readable.
func verdicts(t *testing.T, h *historyBuilder) map[string]Result {
	t.Helper()
	results, _, err := Run(testSettings, h.all())
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Result{}
	for _, r := range results {
		byID[r.Check] = r
	}
	return byID
}

// notFailed stands for Pass or NotExercised: nothing is broken, tested or not.
const notFailed Verdict = "legal"

// testCase is one history and what one check must say of it.
type testCase struct {
	name  string
	build func(*historyBuilder)
	want  Verdict
	// evidence is what the first evidence must contain.
	evidence string
}

// runTestCases runs tales past a check. A tale that the check must not fail is legal:
// no other safety check may fail it either.
func runTestCases(t *testing.T, id string, tests []testCase) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilder()
			test.build(h)
			results := verdicts(t, h.end())
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
					t.Errorf("%s fails it too: %s", other.Check, other.Reason)
				}
			}
		})
	}
}

func checkEvidence(t *testing.T, h *historyBuilder, got Result, says string) {
	t.Helper()
	if len(got.Evidence) == 0 || got.Violations == 0 {
		t.Fatal("failed without evidence")
	}
	first := got.Evidence[0]
	if !strings.Contains(first.Summary, says) {
		t.Errorf("evidence %q does not say %q", first.Summary, says)
	}
	if len(first.Records) == 0 {
		t.Error("evidence points to no record")
	}
	for _, seq := range first.Records {
		if seq < 1 || seq > int64(len(h.records)) {
			t.Errorf("evidence points to record %d of %d", seq, len(h.records))
		}
	}
}
