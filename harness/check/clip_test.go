package check

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestLongTexts checks that results and activities clip long texts of a history, which each report
// repeats for each check.
func TestLongTexts(t *testing.T) {
	long := "beginning " + strings.Repeat("ü", 1e6) + " end"
	for _, c := range []struct {
		name   string
		record history.Record
		text   func(results []Result, activity Activity) string
	}{
		{"a gap", history.Record{Gap: &history.Gap{Source: long, Detail: "x"}}, func(results []Result, _ Activity) string {
			return results[0].Reason
		}},
		{"a failed fault", history.Record{Fault: &history.Fault{Event: history.FaultFailed, Detail: long}}, func(_ []Result, activity Activity) string {
			return activity.Failures[0]
		}},
		{"a failed step", history.Record{Step: &history.Step{Event: history.StepFailed, Error: long}}, func(_ []Result, activity Activity) string {
			return activity.Failures[0]
		}},
		{"a healed fault", history.Record{Fault: &history.Fault{Event: history.FaultHealed, Detail: long}}, func(_ []Result, activity Activity) string {
			return activity.Faults[0].Summary
		}},
		{"a process that died", history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessDied, Detail: long}}, func(results []Result, _ Activity) string {
			for _, r := range results {
				if r.Check == "process-alive" {
					return r.Evidence[0].Summary
				}
			}
			return ""
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistoryBuilder()
			h.append(c.record)
			results, activity, err := Run(testSettings, h.end().all())
			if err != nil {
				t.Fatal(err)
			}
			if text := c.text(results, activity); len(text) > textMax+100 || !strings.Contains(text, "beginning ü") || !strings.Contains(text, "bytes)…ü") || !utf8.ValidString(text) {
				t.Errorf("found %d bytes, which begin with %.100q", len(text), text)
			}
		})
	}
}
