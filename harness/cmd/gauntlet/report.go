package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

func newReport(code *int) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report RUNDIR…",
		Short: "Write one report of several saved runs",
		Long: `Write verdicts.json, junit.xml, summary.md and report.html of saved runs, from the
verdicts in their directories.

RUNDIR is the directory of a run, or a directory that nightly, sweep or an earlier
report wrote. The page of one run shows its timeline. The page of several runs shows
the failure groups, the trend by day, and links to the page of each run.`,
		Example: `  gauntlet report out/RUN1 out/RUN2 --out=report`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) (err error) {
			*code, err = orInterrupted(cmd.Context(), func() (int, error) {
				all, err := readRuns(dirs)
				if err != nil {
					return exitPass, err
				}
				if err := checkReportOut(out, dirs, all); err != nil {
					return exitPass, err
				}
				err = errors.Join(writeReports(cmd, out, all), checkHistory(all))
				if err != nil && !errors.Is(err, run.ErrInUse) {
					err = &unfinishedError{err}
				}
				return verdictCode(all), err
			})
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", filepath.Join("out", "report"), "the `directory` to write to; if it is the directory of the only reported run, its reports are replaced")
	return cmd
}

// checkHistory returns an error if the only reported run passed, but its history is damaged. The page
// then lacks the timeline or its end. Campaigns delete the directories of runs that passed, so a missing
// history is no error.
func checkHistory(all []reports.Run) error {
	if len(all) != 1 || verdictCode(all) != exitPass {
		return nil
	}
	for _, err := range history.ReadFile(run.HistoryFile(all[0].Directory)) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w; expected the complete history of a run with the verdict %s; to check the run again, run gauntlet check", err, all[0].Verdict)
		}
	}
	return nil
}

// readRuns returns all runs whose verdicts are in the given directories. It returns each run
// once, even if dirs contains a run's directory and the directory of its campaign, or a link to it.
func readRuns(dirs []string) ([]reports.Run, error) {
	var all []reports.Run
	seen, read := map[string]bool{}, map[string]bool{}
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if read[realPath(dir)] {
			continue
		}
		read[realPath(dir)] = true
		runs, err := reports.ReadDirectory(dir)
		if err != nil {
			return nil, cmp.Or(checkNotInUse(dir), err)
		}
		for _, r := range runs {
			if r.Directory == "" || !seen[realPath(r.Directory)] { // runs whose directories a campaign has deleted are all different
				seen[realPath(r.Directory)] = true
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// checkNotInUse returns an error if another command has locked the directory. A run in progress has not
// written its verdicts yet.
func checkNotInUse(dir string) error {
	unlock, err := run.Lock(dir)
	if err == nil {
		unlock()
	}
	if errors.Is(err, run.ErrInUse) {
		return err
	}
	return nil
}

// realPath returns a path without symbolic links. If the path does not exist, realPath returns it
// unchanged.
func realPath(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// checkReportOut returns an error if the reports in the directory out would replace other files.
// Out may be the directory of the only reported run, or the only directory in dirs. The argument
// dirs has the arguments of the command, and all has the reported runs.
func checkReportOut(out string, dirs []string, all []reports.Run) error {
	if err := checkDirectory("out", out); err != nil {
		return err
	}
	if len(all) == 1 && sameFile(out, all[0].Directory) || len(dirs) == 1 && sameFile(out, dirs[0]) {
		return nil
	}
	return checkReports("out", out)
}

// sameFile reports whether two paths are those of the same existing file or directory.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// writeReports writes the reports of runs to dir and prints the verdicts.
func writeReports(cmd *cobra.Command, dir string, all []reports.Run) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--out=%s: cannot create the directory: %w", dir, inputfile.Reason(err))
	}
	unlock, err := run.Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	err = reports.WriteFiles(dir, all...)
	if err := errors.Join(err, printVerdicts(cmd.OutOrStdout(), all)); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\nreport: %s\n", filepath.Join(dir, reports.PageName))
	return nil
}
