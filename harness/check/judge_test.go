package check

import (
	"strings"
	"testing"
	"time"
)

// setting is what stories are judged under.
var setting = Settings{Within: 10 * time.Second, Quiet: 2 * time.Second, QPS: 500}

// verdicts judges a history that must be readable.
func verdicts(t *testing.T, s *story) map[string]Result {
	t.Helper()
	results, _, err := Run(setting, s.all())
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Result{}
	for _, r := range results {
		byID[r.Check] = r
	}
	return byID
}

// legal stands for Pass or Idle: nothing is broken, tested or not.
const legal Verdict = "legal"

// tale is one history and what one check must say of it.
type tale struct {
	name string
	tell func(*story)
	want Verdict
	// says is what the first evidence must contain.
	says string
}

// judge runs tales past a check. A tale that the check must not fail is legal:
// no other safety check may fail it either.
func judge(t *testing.T, id string, tales []tale) {
	t.Helper()
	for _, c := range tales {
		t.Run(c.name, func(t *testing.T) {
			s := newStory()
			c.tell(s)
			results := verdicts(t, s.end())
			got := results[id]
			held := c.want == legal && (got.Verdict == Pass || got.Verdict == NotExercised)
			if got.Verdict != c.want && !held {
				t.Fatalf("%s: got %s (%s), want %s", id, got.Verdict, got.Reason, c.want)
			}
			if c.want == Fail {
				checkEvidence(t, s, got, c.says)
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

func checkEvidence(t *testing.T, s *story, got Result, says string) {
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
		if seq < 1 || seq > int64(len(s.records)) {
			t.Errorf("evidence points to record %d of %d", seq, len(s.records))
		}
	}
}
