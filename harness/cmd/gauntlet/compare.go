package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// compareFlags has the values of the flags of "gauntlet compare". The field runs has the flags that
// apply to each run.
type compareFlags struct {
	runs     runFlags
	subjects []string // two values: the program under test, and the program that it is compared with
	pairs    int      // the number of pairs of runs for each scenario
}

func newCompare(code *int) *cobra.Command {
	flags := compareFlags{runs: runFlags{tier: tierFlag(library.Default)}}
	var format outputFormat
	cmd := &cobra.Command{
		Use:   "compare [SCENARIO…]",
		Short: "Run scenarios on two subjects and compare their behavior",
		Long: `Run each scenario on two subjects, and compare verdicts, end states, milestones and
cost. Without SCENARIO, the built-in scenarios of --tier run. The two runs of a pair
have the same seed, on equal control planes with equal flags. Each further pair uses
the next seed.

A difference is accepted if both behaviors are correct, declared if our controllers
differ on purpose, and undeclared otherwise. The exit status is 1 if a difference is
undeclared or if both subjects are wrong. The directory compare-TIME contains the
comparison as Markdown, JSON and HTML, and a page for each pair that aligns the steps
of both runs.

With -o json, the command prints one line of JSON to standard output for each scenario,
with the fields that a comparison has in compare.json. With -o yaml, it prints a YAML
document instead. Everything else goes to standard error.`,
		Example: `  gauntlet compare rollout --pairs=4
  gauntlet compare rollout burst --subjects=exec:./new,exec:./old
  gauntlet compare --quiet -o json | jq -r 'select(.verdict != "pass") | .scenario'`,
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, names []string) error {
			var err error
			*code, err = flags.compare(cmd, format, names)
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.subjects, "subjects", []string{"ours", "upstream"}, "two subjects: the subject, and the base that it is compared with; see --subject of \"gauntlet run\"")
	f.IntVar(&flags.pairs, "pairs", 1, "how many pairs of runs to make of each scenario; a difference in cost can be significant only with 4 pairs or more")
	f.Uint64Var(&flags.runs.seed, "seed", 0, "the seed of the first pair; each further pair uses the next one; 0 uses the seed in the scenario, or a random one if it has none")
	flags.runs.tier.add(f)
	outputFlag(cmd, &format, "the format of what is printed to standard output")
	flags.runs.addAttempts(f)
	flags.runs.addShared(f)
	f.Lookup("parallel").Hidden = true // the method compare refuses --parallel, because concurrent runs distort costs
	return cmd
}

// compare runs each scenario in pairs: once on each of two subjects. It compares the two runs of
// each pair, writes the reports, and returns the exit code. Without names, it runs the built-in
// scenarios of the tier.
func (f *compareFlags) compare(cmd *cobra.Command, format outputFormat, names []string) (int, error) {
	if len(f.subjects) != 2 {
		return exitPass, fmt.Errorf("--subjects: the number of subjects is %d (%s); expected two subjects separated by a comma, such as --subjects=exec:./new,exec:./old", len(f.subjects), strings.Join(f.subjects, ", "))
	}
	if err := checkCount("pairs", f.pairs, 1, runsMax); err != nil {
		return exitPass, err
	}
	if err := checkSeeds(f.runs.seed, f.pairs); err != nil {
		return exitPass, err
	}
	if cmd.Flags().Changed("parallel") {
		return exitPass, errors.New("--parallel has no effect on compare, because concurrent runs would distort the cost that compare measures; omit the flag")
	}
	if err := errors.Join(f.runs.checkAttempts(), checkTier(cmd, names)); err != nil {
		return exitPass, err
	}
	for _, name := range f.subjects {
		if err := checkSubject("subjects", name); err != nil {
			return exitPass, err
		}
	}
	pairs, err := f.planPairs(cmd, names)
	if err != nil {
		return exitPass, err
	}
	begun := time.Now()
	out, err := filepath.Abs(f.runs.out)
	if err != nil {
		return exitPass, err
	}
	var all []reports.Comparison
	var errs []error
	for scenario := range pairs[0][0] {
		c, err := f.comparePairs(cmd.Context(), scenario, pairs)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, c)
		if format != asTable {
			if err := writeDocument(cmd, format, func(w io.Writer) error { return reports.ComparisonJSON(w, &c) }); err != nil {
				errs = append(errs, err)
				break
			}
		}
		if cmd.Context().Err() != nil {
			break
		}
	}
	made := 0
	for i := range all {
		made += len(all[i].Pairs)
	}
	if planned := len(pairs) * len(pairs[0][0]); cmd.Context().Err() != nil && made < planned {
		errs = []error{fmt.Errorf("interrupted after %d of %d pairs", made, planned)}
	}
	to := cmd.OutOrStdout()
	if format != asTable {
		to = cmd.ErrOrStderr()
	}
	if err := writeComparisons(to, newDirectory(out, "compare", begun), all); err != nil {
		errs = append(errs, err)
	}
	code := comparisonCode(all)
	if len(errs) > 0 {
		return code, &unfinishedError{errors.Join(errs...)}
	}
	return code, nil
}

// planPairs returns the options of all runs of a comparison, as pairs[i][side][scenario]. The side
// is 0 for the program under test, and 1 for the program that it is compared with. The two runs of
// a pair have the same seed.
func (f *compareFlags) planPairs(cmd *cobra.Command, names []string) ([][2][]run.Options, error) {
	random := seedOf()
	warnings := cmd.ErrOrStderr()
	var pairs [][2][]run.Options
	for i := range f.pairs {
		var both [2][]run.Options
		if err := interrupted(cmd.Context()); err != nil {
			return nil, err
		}
		for side, name := range f.subjects {
			flags := f.runs
			flags.subject, flags.seed = name, 0 // the field Seed of each scenario has the seed
			scenarios, err := flags.loadScenarios(cmd.Context(), names, warnings)
			warnings = io.Discard // all other calls load the same scenarios and would repeat the warnings
			if err != nil {
				return nil, err
			}
			for _, s := range scenarios {
				s.Seed = seedOf(f.runs.seed, s.Seed, random) + uint64(i)
			}
			if both[side], err = flags.options(cmd, scenarios); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, both)
	}
	return pairs, nil
}

// comparePairs makes all pairs of runs of one scenario, compares the two runs of each pair, and
// returns the results. The options of the runs are pairs[i][side][index].
func (f *compareFlags) comparePairs(ctx context.Context, index int, pairs [][2][]run.Options) (reports.Comparison, error) {
	c := reports.Comparison{Scenario: pairs[0][0][index].Scenario.Name, Subject: f.subjects[0], Base: f.subjects[1]}
	var costs []compare.Pair
	for i, both := range pairs {
		order := []int{0, 1}
		if i%2 == 1 { // alternate the order, because the second run of a pair may be faster: its files are in memory
			slices.Reverse(order)
		}
		var result [2]*reports.Run
		var sides [2]*compare.Side
		for _, side := range order {
			var err error
			if result[side], sides[side], err = f.runSide(ctx, both[side][index]); err != nil {
				return c, fmt.Errorf("running scenario %s with subject %s: %w", c.Scenario, f.subjects[side], err)
			}
		}
		cost := compare.Pair{Subject: sides[0].Cost, Base: sides[1].Cost}
		costs = append(costs, cost)
		c.Pairs = append(c.Pairs, reports.Pair{
			Subject: *result[0], Base: *result[1],
			Differences:       compare.Differences(sides[0], sides[1]),
			Diff:              compare.Diff(sides[0], sides[1]),
			CostNotComparable: !cost.Comparable(),
		})
	}
	c.Ratios = compare.Ratios(costs)
	return c, nil
}

// runSide makes one of the two runs of a pair, and repeats it while the verdict is unknown. It
// returns the last run, and the facts in the run's history that package compare compares.
func (f *compareFlags) runSide(ctx context.Context, o run.Options) (*reports.Run, *compare.Side, error) {
	result, err := retryUnknown(attempt(o), f.runs.attempts, o.Progress)(ctx)
	if err != nil {
		return nil, nil, err
	}
	side, err := compare.SideOf(history.ReadFile(run.HistoryFile(result.Directory)), result.Results)
	return result, side, err
}

// writeComparisons prints the comparisons and writes reports to dir. The reports include a page
// for each pair of runs.
func writeComparisons(out io.Writer, dir string, all []reports.Comparison) error {
	written := os.MkdirAll(dir, 0o755)
	if written != nil {
		written = fmt.Errorf("%s: cannot create the directory of the comparison: %w", dir, inputfile.Reason(written))
	} else {
		written = reports.WriteComparisons(dir, all) // before printing, which may block or fail
	}
	if err := reports.Compared(out, all); err != nil {
		return errors.Join(written, err)
	}
	annotated := writeAnnotations(func() error { return reports.ComparedAnnotations(out, all) })
	fmt.Fprintf(out, "report: %s\n", filepath.Join(dir, reports.ComparedPageName))
	return errors.Join(written, annotated)
}

// comparisonCode returns the exit code of "gauntlet compare", which depends on the worst verdict
// of the comparisons.
func comparisonCode(all []reports.Comparison) int {
	worst := check.Pass
	for i := range all {
		worst = check.Worst(worst, all[i].Verdict())
	}
	return map[check.Verdict]int{check.Fail: exitFail, check.Unknown: exitUnknown, check.Pass: exitPass}[worst]
}
