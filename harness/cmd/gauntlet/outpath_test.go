package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestOutputPaths checks that commands refuse paths at which they cannot write, with exit status 3.
// A later write that fails would have another status.
func TestOutputPaths(t *testing.T) {
	dir, here := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	run := statusRun(t)
	above := filepath.Join(t.TempDir(), "above")
	if err := errors.Join(os.MkdirAll(filepath.Join(above, "fleet-r"), 0o755), os.WriteFile(filepath.Join(above, "fleet-x"), nil, 0o600), os.WriteFile(filepath.Join(above, "fleet-r", "history.jsonl"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	pipe, foreign := filepath.Join(t.TempDir(), "pipe"), filepath.Join(above, "fleet-f")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Mkdir(foreign, 0o755), os.WriteFile(filepath.Join(foreign, failuresName), []byte("mine\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, want string }{
		{"run burst --dry-run --out=FILE", "--out=FILE: found a file; expected a directory"},
		{"run burst --dry-run --out=FILE/x", "--out=FILE/x: FILE is a file; expected a directory in which files can be created"},
		{"run burst --dry-run --out=s3://bucket/x", `--out=s3://bucket/x: found a URL with the scheme "s3"; expected a directory on this machine`},
		{"run burst --dry-run --out=/proc/foo", "--out=/proc/foo: cannot create a directory in /proc: no such file or directory; expected a directory"},
		{"run burst --dry-run --audit-dir=/dev/null/x", "--audit-dir=/dev/null/x: /dev/null is a file"},
		{"explore burst --provider=embedded --dir=FILE --subject=" + startsOnce(t), "--dir=FILE: found a file; expected a directory"},
		{"explore burst --provider=embedded --dir=RUN --subject=" + startsOnce(t), "--dir=RUN: found the directory of a run; expected another directory"},
		{"report RUN --out=FILE", "--out=FILE: found a file; expected a directory"},
		{"fleet collect x --store=HERE --out=FILE", "--out=FILE: found a file; expected a directory"},
		{"run burst --dry-run --out=LINK", "--out=LINK: found the symbolic link LINK, which leads nowhere; expected a directory"},
		{"run burst --dry-run --out=LINK/x", "--out=LINK/x: found the symbolic link LINK, which leads nowhere; expected a directory"},
		{"fleet collect x --store=HERE --out=ABOVE", "--out=ABOVE/fleet-x: found a file; expected a directory"},
		{"fleet collect r --store=HERE --out=ABOVE", "--out=ABOVE/fleet-r: found the directory of a run; expected another directory"},
		{"mutants R1 --tree=../../.. --provider=virtual --out=FILE", "--out=FILE/mutants-virtual: FILE is a file; expected a directory in which files can be created"},
		{"image FILE --output=DIR/none/../x", "--output=DIR/none/../x: directory DIR/none/..: no such file or directory"},
		{"explore burst --out=FILE --dir=FILE --subject=" + startsOnce(t), "--dir=FILE: found a file; expected a directory"},
		{"baseline burst --output=DIR/none/x", "--output=DIR/none/x: directory DIR/none: no such file or directory; create the directory, or name a file in another one"},
		{"coverage RUN --out=DIR/none/x", "--out=DIR/none/x: directory DIR/none: no such file or directory"},
		{"coverage RUN --out=PIPE", "--out=PIPE: found a pipe; expected a regular file"},
		{"image FILE --output=PIPE", "--output=PIPE: found a pipe; expected a regular file"},
		{"fleet collect f --store=HERE --out=ABOVE", "--out=ABOVE/fleet-f: found the file failures.md, but no valid report of gauntlet"},
		{"coverage RUN --out=/proc/x", "--out=/proc/x: directory /proc: no file can be created in it; name a file in another one"},
		{"image FILE --output=LONG", "--output=LONG: file name too long; expected a shorter name"},
		{"coverage RUN --out=LINK", "--out=LINK: found a symbolic link that leads nowhere (to nowhere); expected a file"},
		{"coverage RUN --out=/sys/x", "; name a file in a directory in which files can be created"},
		{"validate LINK", `scenario "LINK": found a symbolic link that leads nowhere (to nowhere); expected a file`},
		{"baseline burst --output=DIR", "--output=DIR: found a directory; expected the path of a new file"},
		{"coverage RUN --out=DIR", "--out=DIR: found a directory; expected a file"},
		{"image FILE --output=DIR/none/x", "--output=DIR/none/x: directory DIR/none: no such file or directory"},
	} {
		t.Run(test.args, func(t *testing.T) {
			places := strings.NewReplacer("DIR", dir, "FILE", file, "PIPE", pipe, "LINK", link, "ABOVE", above, "RUN", run, "HERE", here, "LONG", strings.Repeat("x", 300))
			_, err := command(t, strings.Fields(places.Replace(test.args))...)
			if wanted := places.Replace(test.want); err == nil || !strings.Contains(err.Error(), wanted) || exitCode(exitPass, err) != exitUsage {
				t.Errorf("error %v, exit %d; want %q and exit %d", err, exitCode(exitPass, err), wanted, exitUsage)
			}
		})
	}
}

// TestCheckReports checks which directories "gauntlet report --out" and "gauntlet explore --dir"
// refuse, because reports would replace something else.
func TestCheckReports(t *testing.T) {
	for _, test := range []struct {
		name         string
		files        []string
		reported     bool // the directory has an earlier report
		report, plan string
	}{
		{name: "an empty directory"},
		{name: "other files", files: []string{"notes.md"}},
		{name: "an earlier report", reported: true},
		{name: "a run", files: []string{"history.jsonl"}, reported: true, report: "found the directory of a run", plan: "found the directory of a run"},
		{name: "a search", files: []string{"plan.json", "failures.md"}, reported: true, report: "found the directory of a search of gauntlet explore"},
		{name: "a campaign", files: []string{"failures.md"}, reported: true, report: "found the directory of a campaign", plan: "found the directory of a campaign"},
		{name: "foreign results", files: []string{"results.jsonl"}, plan: "found the file results.jsonl, but no valid report of gauntlet"},
		{name: "a foreign page", files: []string{"report.html"}, report: "found the file report.html, but no valid report of gauntlet", plan: "found the file report.html"},
		{name: "foreign verdicts", files: []string{"verdicts.json"}, report: "found the file verdicts.json", plan: "found the file verdicts.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if test.reported {
				if err := reports.WriteFiles(dir, reports.Run{Scenario: "x", Subject: "ours", Provider: "kind", Verdict: check.Pass}); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, found := range []struct {
				err  error
				want string
			}{{checkReports("out", dir), test.report}, {checkSearchDirectory(dir), test.plan}} {
				if (found.err == nil) != (found.want == "") || found.err != nil && !strings.Contains(found.err.Error(), found.want) {
					t.Errorf("error %v; want %q", found.err, found.want)
				}
			}
			if err := checkReportOut(dir, []string{dir}, nil); err != nil {
				t.Errorf("a report of the directory itself: %v", err)
			}
		})
	}
}
