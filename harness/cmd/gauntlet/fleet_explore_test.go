package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestSearchContinues checks that the next pod gets the directory of a search that has a plan. Without
// a plan, it gets an empty directory.
func TestSearchContinues(t *testing.T) {
	unit := fleet.Unit{Seed: 1, Subject: "ours", Scenario: "rollout"}
	c := fleet.Campaign{Name: "places", Seeds: fleet.Seeds{First: 1, Last: 1}, PerPod: 1, Subjects: []string{"ours"}, Units: []fleet.Unit{unit}}
	store := fleet.Directory(t.TempDir())
	for _, step := range []struct{ pod, found, written string }{
		{"a", "", "results.jsonl"}, // killed during the runs without faults
		{"b", "", "plan.json"},
		{"c", "plan.json", "results.jsonl"},
		{"d", "results.jsonl", ""},
	} {
		w := &fleet.Worker{Campaign: c, Attempt: step.pod, Store: store, Clock: clock.RealClock{}}
		w.Prepare = func(u fleet.Unit) (campaign.Attempt, error) {
			return func(ctx context.Context) (*reports.Run, error) {
				dir := filepath.Join(t.TempDir(), "explore")
				if err := restoreSearch(ctx, w, u, dir); err != nil {
					t.Error(err)
				}
				entries, err := os.ReadDir(dir)
				if step.found == "" && len(entries) > 0 || err != nil {
					t.Errorf("pod %s: found %v, %v; want an empty directory", step.pod, entries, err)
				}
				if _, err := os.Stat(filepath.Join(dir, step.found)); err != nil {
					t.Errorf("pod %s: %v", step.pod, err)
				}
				if step.written != "" {
					err = os.WriteFile(filepath.Join(dir, step.written), []byte("{}"), 0o644)
				}
				return nil, errors.Join(err, saveSearch(ctx, w, u, dir), errors.New("killed"))
			}, nil
		}
		if err := w.Work(t.Context()); err == nil {
			t.Fatal("found no error; want that of the run")
		}
	}
}

// TestSummarizeSearch checks that the run that stands for a search has the failures of all its runs.
func TestSummarizeSearch(t *testing.T) {
	passed := check.Result{Check: "ownership", Verdict: check.Pass}
	violated := check.Result{Check: "max-surge", Verdict: check.Fail}
	unknown := check.Result{Check: "converged", Verdict: check.Unknown}
	summary := summarizeSearch(&explore.Outcome{Failed: []reports.Run{
		{Verdict: check.Unknown, Results: []check.Result{passed, unknown}}, {Verdict: check.Fail, Results: []check.Result{violated, passed}},
		{Verdict: check.Fail, Results: []check.Result{violated, {Check: "converged", Verdict: check.Fail}}},
	}})
	if summary.Verdict != check.Fail || len(summary.Results) != 2 || summary.Results[0].Verdict != check.Fail {
		t.Errorf("summary %+v; want the verdict fail and two failed results", summary)
	}
	var content bytes.Buffer
	err := reports.RunJSON(&content, summary)
	if err == nil {
		_, err = reports.ReadRunJSON(content.Bytes())
	}
	if err != nil {
		t.Errorf("the summary cannot be read again: %v", err)
	}
	if summary := summarizeSearch(&explore.Outcome{Complete: true}); summary.Verdict != check.Unknown {
		t.Errorf("verdict %s of a search in which no run reached a place; want unknown", summary.Verdict)
	}
}
