package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

func newCheck(code *int) *cobra.Command {
	return &cobra.Command{
		Use:   "check RUNDIR…",
		Short: "Check saved runs again",
		Long: `Check saved runs again, from their histories alone, and rewrite their reports. The
same history always gets the same verdicts.`,
		Example: `  gauntlet check out/RUN`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) (err error) {
			*code, err = orInterrupted(cmd.Context(), func() (int, error) { return checkAll(cmd, paths) })
			return err
		},
	}
}

// checkAll checks the saved runs in the given directories and prints the verdicts. It returns the
// exit code for the worst verdict. A run counts once, even if several paths lead to it.
func checkAll(cmd *cobra.Command, paths []string) (int, error) {
	relaxGarbageCollection()
	var all []reports.Run
	var failed, refused []error
	checked := map[string]bool{}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return exitPass, err
		}
		if checked[realPath(absolute)] { // the same run again, or a link to it
			continue
		}
		checked[realPath(absolute)] = true
		result, err := run.Check(path)
		if result == nil {
			refused = append(refused, err) // path is no valid run directory, or another command uses it
			continue
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", path, err))
		}
		all = append(all, *result)
	}
	if len(all) == 0 {
		return exitPass, errors.Join(refused...)
	}
	failed = append(failed, refused...)
	if err := printVerdicts(cmd.OutOrStdout(), all); err != nil {
		failed = append(failed, err)
	}
	if len(failed) > 0 {
		return verdictCode(all), &unfinishedError{errors.Join(failed...)}
	}
	return verdictCode(all), nil
}

// relaxGarbageCollection makes garbage collections less frequent, so that checks run faster. A
// check allocates many short-lived records and retains little memory.
//
// If the user has set GOGC, it does nothing.
func relaxGarbageCollection() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// printVerdicts prints the verdicts of runs. In a GitHub Actions job, it also prints workflow
// commands that annotate the job.
func printVerdicts(out io.Writer, all []reports.Run) error { return printVerdictsOf(out, all, all) }

// printVerdictsOf prints the verdicts of the runs in shown. In a GitHub Actions job, it also prints
// workflow commands, which annotate the job with the failures of the runs in all.
func printVerdictsOf(out io.Writer, shown, all []reports.Run) error {
	if len(shown) > 0 {
		if err := reports.Terminal(out, shown, terminalWidth(out)); err != nil {
			return &unfinishedError{err}
		}
	}
	if len(all) == 0 {
		return nil
	}
	if err := writeAnnotations(func() error { return reports.Annotations(out, all) }); err != nil {
		return &unfinishedError{err}
	}
	return nil
}

// writeAnnotations calls its argument write if gauntlet runs in a GitHub Actions job. The
// argument writes workflow commands, which annotate the job. In any other environment,
// writeAnnotations does nothing.
func writeAnnotations(write func() error) error {
	if os.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	return write()
}

// verdictCode returns the exit code for the worst verdict of the runs: exitPass, exitFail or
// exitUnknown. Without runs, it returns exitUnknown.
func verdictCode(all []reports.Run) int {
	if len(all) == 0 {
		return exitUnknown
	}
	worst := check.Pass
	for _, r := range all {
		worst = check.Worst(worst, r.Verdict)
	}
	switch worst {
	case check.Pass, check.KnownUpstream:
		return exitPass
	case check.Fail:
		return exitFail
	default:
		return exitUnknown
	}
}
