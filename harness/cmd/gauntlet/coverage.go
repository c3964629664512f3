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

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/run"
)

func newCoverage() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "coverage RUNDIR…",
		Short: "Print which faults acted on which requests in saved runs",
		Long: `Print how often each fault type acted on which requests of the subject or on which
other objects, and in which phase: while a replica started, during a rollout, during
scaling, or at rest. A dot means never.

RUNDIR is the directory of a run, or a directory that nightly, sweep or report wrote.
Of such a directory, it reads only the runs whose directories still exist. --out writes
the table to a file for the flag --prefer-uncovered of run, generate, sweep seeds and
nightly. It replaces an earlier table, and no other file.`,
		Example: `  gauntlet coverage out/RUN1 out/RUN2
  gauntlet coverage out/RUN --out=seen.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if err := checkCoverageOut(out); err != nil {
				return err
			}
			if _, err := os.Stat(dirs[0]); errors.Is(err, os.ErrNotExist) && nearest.Name(dirs[0], commandNames(cmd)) != "" {
				return fmt.Errorf("%s: %w; expected a run directory%s", dirs[0], inputfile.Reason(err), nearest.Suggestion(dirs[0], commandNames(cmd)))
			}
			_, err := orInterrupted(cmd.Context(), func() (*coverage.Table, error) { return writeCoverageOf(cmd, dirs, out) })
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "a `file` to write the table to, as JSON")
	cmd.AddCommand(newCoverageScenarios())
	return cmd
}

// writeCoverageOf prints and returns the coverage table: how often faults acted in saved runs, by
// verb and resource. The argument dirs contains the directories of the runs. If out is not empty,
// writeCoverageOf also writes the table to this file.
func writeCoverageOf(cmd *cobra.Command, dirs []string, out string) (*coverage.Table, error) {
	files, err := findHistories(dirs)
	if err != nil {
		return nil, err
	}
	var table coverage.Table
	var cut []error
	for _, file := range files {
		err := table.Add(history.ReadFile(file))
		switch {
		case errors.Is(err, history.ErrTruncated): // count the records before the truncated line
			cut = append(cut, err)
		case err != nil:
			return nil, err
		}
	}
	if out != "" {
		if err := writeCoverage(out, &table); err != nil {
			return nil, &unfinishedError{err}
		}
	}
	if err := errors.Join(append(cut, table.WriteText(cmd.OutOrStdout()))...); err != nil {
		return nil, &unfinishedError{err}
	}
	return &table, nil
}

// findHistories returns the absolute path of each run's history in the given directories, sorted,
// without repetitions and symbolic links. It skips runs whose directory was deleted.
func findHistories(dirs []string) ([]string, error) {
	var files, campaigns []string
	for _, dir := range dirs {
		file := run.HistoryFile(dir)
		if _, err := os.Stat(file); err == nil { // dir is a run directory, even if it has no verdicts yet
			if err := checkEnded(dir); err != nil {
				return nil, err
			}
			files = append(files, file)
		} else {
			campaigns = append(campaigns, dir)
		}
	}
	runs, err := readRuns(campaigns)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if _, err := os.Stat(r.Directory); r.Directory != "" && !errors.Is(err, os.ErrNotExist) {
			files = append(files, run.HistoryFile(r.Directory))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: found no history.jsonl; name directories of runs (nightly and sweep delete the directories of runs that passed)", strings.Join(dirs, ", "))
	}
	for i, file := range files {
		if files[i], err = filepath.Abs(file); err != nil {
			return nil, err
		}
		files[i] = realPath(files[i])
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// checkEnded returns an error if another command uses a run directory, for example because the run
// has not ended.
func checkEnded(dir string) error {
	unlock, err := run.Lock(dir)
	if err == nil {
		unlock()
	}
	if errors.Is(err, run.ErrInUse) {
		return err
	}
	return nil // the file system may not support locks
}

// checkCoverageOut returns an error if path is an existing file that is not a coverage table.
// Otherwise, --out could overwrite another file, such as the history of a run. A coverage table is
// a file that "gauntlet coverage --out" has written.
func checkCoverageOut(path string) error {
	if path == "" {
		return nil
	}
	if err := checkFile("out", path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil // a new file, or a device such as /dev/stdout
	}
	if _, err := readCoverage(path); err != nil {
		return fmt.Errorf("--out: the file exists and is no coverage table; name another file: %w", err)
	}
	return nil
}

// writeCoverage writes a coverage table as JSON to the file at path. readCoverage reads this file.
func writeCoverage(path string, table *coverage.Table) error {
	text, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return err
	}
	if err := outputfile.Replace(path, append(text, '\n')); err != nil {
		return fmt.Errorf("writing the coverage table: %w", err)
	}
	return nil
}

// readCoverage returns the coverage table in a file that writeCoverage wrote. The flag
// --prefer-uncovered names the file.
func readCoverage(path string) (*coverage.Table, error) {
	text, err := inputfile.Read(path)
	if err != nil {
		return nil, inputfile.WithExpected(err, "a file that \"gauntlet coverage --out\" wrote")
	}
	if err := inputfile.Mistaken(text, "a file that \"gauntlet coverage --out\" wrote"); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var table coverage.Table
	if err := json.Unmarshal(text, &table); err != nil {
		place, reason := inputfile.Locate(path, text, err, table)
		return nil, fmt.Errorf("%s: expected a file in JSON that \"gauntlet coverage --out\" wrote: %s", place, reason)
	}
	return &table, nil
}
