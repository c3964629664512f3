package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestCoverageOfRunInProgress checks that "gauntlet coverage" refuses a run that has not ended.
func TestCoverageOfRunInProgress(t *testing.T) {
	dir := statusRun(t)
	unlock, err := run.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := findHistories([]string{dir}); !errors.Is(err, run.ErrInUse) {
		t.Errorf("error %v; want %v", err, run.ErrInUse)
	}
	unlock()
	if _, err := findHistories([]string{dir}); err != nil {
		t.Errorf("error %v after the end of the run", err)
	}
}

// TestCoverageOfDeletedRun checks that "gauntlet coverage" skips a run of a campaign whose directory
// does not exist.
func TestCoverageOfDeletedRun(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	deleted := filepath.Join(dir, "deleted")
	if err := reports.WriteFiles(dir, reports.Run{Scenario: "x", Subject: "ours", Provider: "kind", Directory: kept, Verdict: check.Fail}, reports.Run{Scenario: "x", Subject: "ours", Provider: "kind", Directory: deleted, Verdict: check.Fail}); err != nil {
		t.Fatal(err)
	}
	files, err := findHistories([]string{dir})
	if want := []string{filepath.Join(kept, "history.jsonl")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("found %q, error %v; want %q", files, err, want)
	}
}
