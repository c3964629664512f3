package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestClosedOutput checks that a closed pipe on standard output is a failed write. SIGPIPE must not
// end gauntlet.
func TestClosedOutput(t *testing.T) {
	if os.Getenv("GAUNTLET_TEST_MAIN") != "" {
		os.Args = []string{"gauntlet", "list", "checks"}
		main()
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestClosedOutput$")
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "GAUNTLET_TEST_MAIN=1"), writer, &stderr
	err = cmd.Run()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != exitUnknown || !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("error %v, standard error %q; want exit status %d, and a broken pipe", err, stderr.String(), exitUnknown)
	}
}

// TestComparisonFiles checks that a comparison writes its reports even if it cannot print.
func TestComparisonFiles(t *testing.T) {
	dir := t.TempDir()
	run := reports.Run{Scenario: "burst", Verdict: check.Pass}
	all := []reports.Comparison{{Scenario: "burst", Subject: "ours", Base: "upstream", Pairs: []reports.Pair{{Subject: run, Base: run}}}}
	if err := writeComparisons(fullDisk{}, dir, all); err == nil {
		t.Error("found no error; want that the output cannot be written")
	}
	if _, err := os.Stat(filepath.Join(dir, reports.ComparedPageName)); err != nil {
		t.Error(err)
	}
}
