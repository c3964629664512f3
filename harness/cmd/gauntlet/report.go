package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/reports"
)

func newReport(code *int) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report RUNDIR…",
		Short: "Write the reports of saved runs again, all runs together",
		Long: `Write verdicts.json, junit.xml, summary.md and report.html of saved runs, from the
verdicts that are in their directories.

RUNDIR is the directory of a run, or one that nightly, sweep or an earlier report left. One
run gets a page with its timeline. Several get one page together: what went wrong,
how it went from day to day, and the way to the page of each.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			all, err := readRuns(dirs)
			if err != nil {
				return err
			}
			*code = verdictCode(all)
			if err := writeReports(cmd, out, all); err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", filepath.Join("out", "report"), "the `directory` to write to; that of a run has its own replaced")
	return cmd
}

// readRuns reads the verdicts of all directories, and each run once: a night's
// directory and the runs' own may both be given.
func readRuns(dirs []string) ([]reports.Run, error) {
	var all []reports.Run
	seen, read := map[string]bool{}, map[string]bool{}
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if read[dir] {
			continue
		}
		read[dir] = true
		runs, err := reports.ReadDirectory(dir)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			if run.Directory == "" || !seen[run.Directory] { // of a run that was not kept there is nothing else
				seen[run.Directory] = true
				all = append(all, run)
			}
		}
	}
	return all, nil
}

// writeReports writes the files and prints what a terminal gets.
func writeReports(cmd *cobra.Command, dir string, all []reports.Run) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the reports: %w", err)
	}
	err = reports.WriteFiles(dir, all...)
	if err := errors.Join(err, show(cmd, all)); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\nsee %s\n", filepath.Join(dir, reports.PageName))
	return nil
}
