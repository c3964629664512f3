package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// compareFlags are the flags of `gauntlet compare`. Those of the runs are the same
// as those of `gauntlet run`.
type compareFlags struct {
	runs     runFlags
	subjects []string
	pairs    int
}

func newCompare(code *int) *cobra.Command {
	flags := compareFlags{}
	cmd := &cobra.Command{
		Use:   "compare [SCENARIO…]",
		Short: "Run scenarios on two subjects and compare what they did",
		Long: `Run scenarios on two subjects in turn, pair by pair with one seed after another,
on equal control planes with equal flags, and compare verdicts, end states,
milestones and cost.

A difference is accepted where either way is right, declared where ours is meant
to differ, and otherwise undeclared: then the exit status is 1, as it is where both
subjects are wrong. The directory compare-TIME has what is printed as Markdown, as
JSON and as a page, and a page for each pair, on which the steps of both runs fall
together.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			var err error
			*code, err = flags.compare(cmd, names)
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.subjects, "subjects", []string{"ours", "upstream"}, "the subject and what it is compared with: see --subject of gauntlet run")
	f.IntVar(&flags.pairs, "pairs", 1, "how many pairs of runs there are of each scenario; cost needs 4 or more to be told apart")
	f.Uint64Var(&flags.runs.seed, "seed", 0, "the first pair's seed; each pair has the next one; 0 takes the scenario's own seed, or else a random one")
	flags.runs.attemptsFlag(f)
	flags.runs.shared(f)
	return cmd
}

// compare makes all pairs and reports on them.
func (f *compareFlags) compare(cmd *cobra.Command, names []string) (int, error) {
	if len(f.subjects) != 2 {
		return exitPass, fmt.Errorf("--subjects: found %d; expected two, separated by a comma", len(f.subjects))
	}
	if f.pairs < 1 {
		return exitPass, fmt.Errorf("--pairs: found %d; expected 1 or more", f.pairs)
	}
	if err := f.runs.checkAttempts(); err != nil {
		return exitPass, err
	}
	for _, name := range f.subjects {
		if _, err := subject.ParseTarget(name); err != nil {
			return exitPass, err
		}
	}
	pairs, err := f.planned(cmd, names)
	if err != nil {
		return exitPass, err
	}
	dir, err := filepath.Abs(filepath.Join(f.runs.out, "compare-"+time.Now().UTC().Format("20060102T150405")))
	if err != nil {
		return exitPass, err
	}
	var all []reports.Comparison
	var broken []error
	for scenario := range pairs[0][0] {
		c, err := f.scenario(cmd.Context(), scenario, pairs)
		if err != nil {
			broken = append(broken, err)
		}
		all = append(all, c)
		if cmd.Context().Err() != nil {
			break
		}
	}
	if err := writeComparisons(cmd, dir, all); err != nil {
		broken = append(broken, err)
	}
	code := comparisonCode(all)
	if len(broken) > 0 {
		return code, &unfinishedError{errors.Join(broken...)}
	}
	return code, nil
}

// planned is what is to be run: by pair, the runs of each subject, one of each scenario.
func (f *compareFlags) planned(cmd *cobra.Command, names []string) ([][2][]run.Options, error) {
	random := seedOf()
	var pairs [][2][]run.Options
	for i := range f.pairs {
		var both [2][]run.Options
		for side, name := range f.subjects {
			scenarios, err := loadScenarios(names)
			if err != nil {
				return nil, err
			}
			for _, s := range scenarios {
				s.Seed = seedOf(f.runs.seed, s.Seed, random) + uint64(i)
			}
			flags := f.runs
			flags.subject, flags.seed = name, 0 // each scenario has its own
			if both[side], err = flags.options(cmd, scenarios); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, both)
	}
	return pairs, nil
}

// scenario makes the pairs of one scenario.
func (f *compareFlags) scenario(ctx context.Context, index int, pairs [][2][]run.Options) (reports.Comparison, error) {
	c := reports.Comparison{Scenario: pairs[0][0][index].Scenario.Name, Subject: f.subjects[0], Base: f.subjects[1]}
	var costs []compare.Pair
	for i, both := range pairs {
		order := []int{0, 1}
		if i%2 == 1 { // whoever runs second finds a warmer machine
			slices.Reverse(order)
		}
		var judged [2]*reports.Run
		var sides [2]*compare.Side
		for _, side := range order {
			var err error
			if judged[side], sides[side], err = f.comparedRun(ctx, both[side][index]); err != nil {
				return c, fmt.Errorf("%s on %s: %w", c.Scenario, f.subjects[side], err)
			}
		}
		cost := compare.Pair{Subject: sides[0].Cost, Base: sides[1].Cost}
		costs = append(costs, cost)
		c.Pairs = append(c.Pairs, reports.Pair{
			Subject: *judged[0], Base: *judged[1],
			Differences:       compare.Differences(sides[0], sides[1]),
			Diff:              compare.Diff(sides[0], sides[1]),
			CostNotComparable: !cost.Comparable(),
		})
	}
	c.Ratios = compare.Ratios(costs)
	return c, nil
}

// comparedRun makes a run and reads what can be compared of it.
func (f *compareFlags) comparedRun(ctx context.Context, o run.Options) (*reports.Run, *compare.Side, error) {
	judged, err := untilKnown(attempt(o), f.runs.attempts, o.Progress)(ctx)
	if err != nil {
		return nil, nil, err
	}
	side, err := compare.SideOf(history.ReadFile(run.HistoryFile(judged.Directory)), judged.Results)
	return judged, side, err
}

// writeComparisons prints what the comparisons came to, and leaves it and the pairs'
// pages in a directory.
func writeComparisons(cmd *cobra.Command, dir string, all []reports.Comparison) error {
	if err := reports.Compared(cmd.OutOrStdout(), all); err != nil {
		return err
	}
	if err := annotate(func() error { return reports.ComparedAnnotations(cmd.OutOrStdout(), all) }); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keeping the comparison: %w", err)
	}
	err := reports.WriteComparisons(dir, all)
	fmt.Fprintf(cmd.OutOrStdout(), "see %s\n", filepath.Join(dir, reports.ComparedPageName))
	return err
}

// comparisonCode is what gauntlet exits with after these comparisons.
func comparisonCode(all []reports.Comparison) int {
	worst := check.Pass
	for i := range all {
		worst = check.Worst(worst, all[i].Verdict())
	}
	return map[check.Verdict]int{check.Fail: exitFail, check.Unknown: exitUnknown, check.Pass: exitPass}[worst]
}
