package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestReport checks that a report has each run once, even if the arguments contain a run and its
// campaign. It also checks the GitHub annotations, and that a
// report of other runs does not replace the verdicts of a run.
func TestReport(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	top := t.TempDir()
	broken := reports.Run{Scenario: "burst", Subject: "ours", Provider: "kind", Seed: 7, Directory: filepath.Join(top, "run"), Verdict: check.Unknown, Reason: "100% broken"}
	other := broken
	other.Directory, other.Verdict = filepath.Join(top, "gone"), check.Pass
	for dir, runs := range map[string][]reports.Run{"run": {broken}, "night": {broken, other}} {
		dir = filepath.Join(top, dir)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := reports.WriteFiles(dir, runs...); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(top, "out")
	said, err := command(t, "report", "--out="+out, filepath.Join(top, "run"), filepath.Join(top, "night"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, said, "2 runs: 1 unknown, 1 pass")
	want(t, said, "::warning title=burst on ours::100%25 broken (in 1 run)%0Areproduce: ")
	want(t, said, "report: "+filepath.Join(out, "report.html"))
	if err := os.WriteFile(run.HistoryFile(filepath.Join(top, "run")), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "report", "--out="+filepath.Join(top, "run"), filepath.Join(top, "run")); err != nil {
		t.Error(err)
	}
	if _, err := command(t, "report", "--out="+filepath.Join(top, "run"), filepath.Join(top, "night")); err == nil {
		t.Error("the report of several runs replaced the report of one run; want an error")
	} else {
		want(t, err.Error(), "/run: found the directory of a run; expected another directory")
	}
	if merged, err := reports.ReadDirectory(out); err != nil || len(merged) != 2 {
		t.Errorf("%d runs in the merged report, %v; want 2", len(merged), err)
	}
}

// TestReportOfLinks checks that a run counts once, even if an argument is a link to its directory.
func TestReportOfLinks(t *testing.T) {
	dir := statusRun(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{dir, link}, {link, dir}} {
		said, err := command(t, append([]string{"report", "--out=" + t.TempDir()}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		want(t, said, "1 run: 1 unknown")
		if files, err := findHistories(args); err != nil || len(files) != 1 {
			t.Errorf("histories %q, error %v; want one", files, err)
		}
	}
}

// TestReportOfDamagedHistory checks that the report of a run that passed ends with an error if its history
// is damaged.
func TestReportOfDamagedHistory(t *testing.T) {
	for _, test := range []struct {
		name, text string
		verdict    check.Verdict
		want       string // the error; empty for none
	}{
		{"complete", wroteStart, check.Pass, ""},
		{"missing", "", check.Pass, ""},
		{"garbage", "garbage\n", check.Pass, "line 1: "},
		{"cut", wroteStart + `{"seq"`, check.Pass, "line 2 is incomplete: the end of the history is missing; expected the complete history of a run with the verdict pass"},
		{"cut, unknown", wroteStart + `{"seq"`, check.Unknown, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if test.text != "" {
				if err := os.WriteFile(run.HistoryFile(dir), []byte(test.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := reports.WriteFiles(dir, reports.Run{Scenario: "burst", Subject: "ours", Provider: "kind", Directory: dir, Verdict: test.verdict, Results: []check.Result{{Check: "status", Verdict: test.verdict}}}); err != nil {
				t.Fatal(err)
			}
			_, err := command(t, "report", dir, "--out="+dir)
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || exitCode(exitPass, err) != exitUnknown) {
				t.Errorf("error %v; want %q", err, test.want)
			}
		})
	}
}
