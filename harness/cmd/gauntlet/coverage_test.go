package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestCoverageOfDeletedRun checks that "gauntlet coverage" skips a run of a campaign whose directory
// does not exist.
func TestCoverageOfDeletedRun(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	deleted := filepath.Join(dir, "deleted")
	if err := reports.WriteFiles(dir, reports.Run{Directory: kept, Verdict: check.Fail}, reports.Run{Directory: deleted, Verdict: check.Fail}); err != nil {
		t.Fatal(err)
	}
	files, err := findHistories([]string{dir})
	if want := []string{filepath.Join(kept, "history.jsonl")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("found %q, error %v; want %q", files, err, want)
	}
}
