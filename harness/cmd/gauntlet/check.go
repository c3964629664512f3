package main

import (
	"fmt"

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
			var all []reports.Run
			for _, path := range paths {
				judged, err := run.Judge(path)
				if err != nil {
					return err
				}
				all = append(all, *judged)
			}
			*code = verdictCode(all)
			return print(cmd, all)
		},
	}
}

// print shows the verdicts of some runs.
func print(cmd *cobra.Command, all []reports.Run) error {
	out := cmd.OutOrStdout()
	if err := reports.Terminal(out, all, isTerminal(out)); err != nil {
		return &unfinishedError{fmt.Errorf("printing the verdicts: %w", err)}
	}
	return nil
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
	case check.Pass:
		return exitPass
	case check.Fail:
		return exitFail
	default:
		return exitUnknown
	}
}
