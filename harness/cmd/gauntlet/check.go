package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

func newCheck(code *int) *cobra.Command {
	return &cobra.Command{
		Use:   "check RUNDIR…",
		Short: "Judge saved runs again",
		Long: `Judge the runs in directories again, from their histories alone, and write their
reports anew. The same history always gets the same verdicts.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			collectLess()
			var all []reports.Run
			var failed []error
			for _, path := range paths {
				judged, err := run.Check(path)
				if err != nil && judged == nil && !errors.Is(err, run.ErrUnreadable) {
					return err // it is no run directory
				}
				if err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", path, err))
				}
				if judged != nil {
					all = append(all, *judged)
				}
			}
			*code = verdictCode(all)
			if err := show(cmd, all); err != nil {
				failed = append(failed, err)
			}
			if len(failed) > 0 {
				return &unfinishedError{errors.Join(failed...)}
			}
			return nil
		},
	}
}

// collectLess has garbage collected less often, unless the user says how often: what
// is held of a history is little, what is read of it and thrown away much.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// show prints the verdicts of some runs, and annotates the job of GitHub Actions
// that they were made in, if they were.
func show(cmd *cobra.Command, all []reports.Run) error {
	out := cmd.OutOrStdout()
	if len(all) == 0 {
		return nil
	}
	if err := reports.Terminal(out, all, isTerminal(out)); err != nil {
		return &unfinishedError{fmt.Errorf("printing the verdicts: %w", err)}
	}
	if err := annotate(func() error { return reports.Annotations(out, all) }); err != nil {
		return &unfinishedError{err}
	}
	return nil
}

// annotate writes annotations in a job of GitHub Actions, and nowhere else.
func annotate(write func() error) error {
	if os.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	return write()
}

// verdictCode is what gauntlet exits with after these runs.
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
