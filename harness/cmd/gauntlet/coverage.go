package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
)

func newCoverage() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "coverage RUNDIR…",
		Short: "Print what faults have done in saved runs",
		Long: `Print how often each kind of fault did what to which requests of the subject, or to
what else, in which phase: while a replica started, during a rollout, while something was
scaled, or otherwise. A dot is what has not been seen.

RUNDIR is the directory of a run, judged or not, or one that nightly, sweep or report
left: of that, the runs that were kept. With --out the table is kept for gauntlet run --lean and the like, which prefer what it
has little of.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			files, err := histories(dirs)
			if err != nil {
				return err
			}
			var table coverage.Table
			var cut []error
			for _, file := range files {
				err := table.Add(history.ReadFile(file))
				switch {
				case errors.Is(err, history.ErrTruncated): // what came before counts
					cut = append(cut, err)
				case err != nil:
					return err
				}
			}
			if out != "" {
				if err := writeCoverage(out, &table); err != nil {
					return err
				}
			}
			if err := errors.Join(append(cut, table.WriteText(cmd.OutOrStdout()))...); err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "a `file` to keep the table in, as JSON")
	return cmd
}

// histories are those of all runs in the directories that were kept, each once.
func histories(dirs []string) ([]string, error) {
	var files, judged []string
	for _, dir := range dirs {
		file := run.HistoryFile(dir)
		if _, err := os.Stat(file); err == nil { // verdicts are not needed
			files = append(files, file)
		} else {
			judged = append(judged, dir)
		}
	}
	runs, err := readRuns(judged)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.Directory != "" {
			files = append(files, run.HistoryFile(r.Directory))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: found no history; expected runs that were kept, as nightly and sweep keep those that did not pass", strings.Join(dirs, ", "))
	}
	for i, file := range files {
		if files[i], err = filepath.Abs(file); err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func writeCoverage(path string, table *coverage.Table) error {
	text, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("keeping the coverage: %w", err)
	}
	return nil
}

func readCoverage(path string) (*coverage.Table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var table coverage.Table
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, fmt.Errorf("%s: expected what gauntlet coverage --out wrote: %w", path, err)
	}
	return &table, nil
}
