package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/shrink"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// exploreFlags has the values of the flags of "gauntlet explore". This command searches for places
// in a run at which a fault makes a check fail.
type exploreFlags struct {
	runs     runFlags
	dir      string   // the directory of the search; empty for the default
	at       []string // the names of the faults to inject
	baseline int      // the number of runs without faults
	budget   time.Duration
	delay    time.Duration // how long an event or a response is late
	shrink   bool          // after the search, shrink one run of each failure group
}

func newExplore(code *int) *cobra.Command {
	var flags exploreFlags
	all := actionNames(explore.Actions)
	cmd := &cobra.Command{
		Use:   "explore SCENARIO",
		Short: "Search for places in a run at which the subject does not survive a fault",
		Long: `Run the workload of a scenario without faults, and learn which writes the subject sends
and which watch events it gets. Each of them is a place for a fault. Prune the places at
which a fault cannot matter. Then run the workload again for each other place, with a
fault there, and at last for pairs of places of which one depends on the other.

The checks compare each run with the runs without faults, whose failures are not reported
again. The same command continues an interrupted search. The directory of the search has
the plan, the results and the runs that failed.`,
		Example: `  gauntlet explore rollout --budget=30m
  gauntlet explore my-scenario.yaml --subject=my-operator.yaml --at=crash,stale --shrink`,
		ValidArgsFunction: completeScenarios,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			*code, err = flags.run(cmd, args[0])
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.runs.subject, "subject", "ours", "the controllers under test; see --subject of \"gauntlet run\"")
	f.DurationVar(&flags.budget, "budget", 30*time.Minute, "the time after which no new run starts; with 0, the search ends when every place was tried")
	f.StringSliceVar(&flags.at, "at", all, "the faults to inject, of which the search tries one place each in turn, in this order: "+strings.Join(all, ", "))
	f.DurationVar(&flags.delay, "delay", explore.DefaultDelay, "how late an event or a response is, with the faults held, late and stale of --at")
	f.IntVar(&flags.baseline, "baseline", 3, "the number of runs without faults; a place that is not in all of them is pruned")
	f.StringVar(&flags.dir, "dir", "", "the `directory` of the search (default: explore-SCENARIO-SUBJECT in the directory of --out)")
	f.BoolVar(&flags.shrink, "shrink", false, "afterwards, shrink the smallest run of each failure group, as \"gauntlet shrink\" does; this takes time in addition to --budget")
	f.Uint64Var(&flags.runs.seed, "seed", 1, "the seed of all random choices")
	flags.runs.addShared(f)
	return cmd
}

// run searches for places at which a fault makes a check fail. A place is a write or a watch event
// of the program under test. run prints the outcome, and returns the exit code for the verdicts.
func (f *exploreFlags) run(cmd *cobra.Command, name string) (int, error) {
	if err := checkCount("baseline", f.baseline, 1, runsMax); err != nil {
		return exitPass, err
	}
	if err := checkBudget(f.budget); err != nil {
		return exitPass, err
	}
	if f.delay < explore.DelayMin || f.delay > explore.DelayMax {
		return exitPass, fmt.Errorf("--delay=%s: expected %s to %s", f.delay, explore.DelayMin, explore.DelayMax)
	}
	o, err := f.options(cmd, name)
	if err != nil {
		return exitPass, err
	}
	if err := checkSearchDirectory(f.dir); err != nil {
		return exitPass, err
	}
	if err := os.MkdirAll(o.Directory, 0o755); err != nil {
		return exitPass, fmt.Errorf("%s: cannot create the directory of the search: %w", o.Directory, inputfile.Reason(err))
	}
	unlock, err := run.Lock(o.Directory)
	if err != nil {
		return exitPass, err
	}
	defer unlock()
	outcome, err := explore.Run(cmd.Context(), o)
	if state := new(explore.StateError); errors.As(err, &state) {
		return exitPass, err // the files of the search are wrong; no run has started
	}
	if outcome == nil {
		if err == nil {
			err = errors.New("interrupted during the runs without faults; run the same command to start again")
		}
		return exitPass, &unfinishedError{err}
	}
	printOutcome(cmd, outcome)
	results := campaign.Results{Runs: outcome.Runs(), Failed: outcome.Failed, Passed: outcome.Passed}
	if cmd.Context().Err() != nil && !outcome.Complete {
		results.Interrupted = fmt.Sprintf("interrupted; runs with a result: %d; run the same command to continue the search", results.Runs)
	}
	err = errors.Join(err, reportCampaign(cmd, o.Directory, results), outcome.ReadError())
	code := exitPass
	if len(outcome.Failed) > 0 {
		code = verdictCode(outcome.Failed)
	}
	switch {
	case err != nil:
	case results.Interrupted != "":
		err = errors.New(results.Interrupted)
	case results.Runs == 0:
		code, err = exitUnknown, f.nothingTested(outcome)
	case f.shrink:
		err = f.shrinkFailures(cmd, outcome.Failed)
	}
	if err != nil {
		return code, &unfinishedError{err}
	}
	if outcome.FailedStarts > 0 {
		return code, &unfinishedError{fmt.Errorf("%d runs ended before their faults, so that their places have no result; run the same command to try them again", outcome.FailedStarts)}
	}
	if !outcome.Complete {
		fmt.Fprintln(cmd.OutOrStdout(), "the time of --budget is used up; run the same command to continue the search")
	}
	return code, nil
}

// printOutcome prints the results of a search, and the checks that fail without faults, too.
func printOutcome(cmd *cobra.Command, outcome *explore.Outcome) {
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", outcome)
	for _, line := range outcome.FailuresWithoutFaults() {
		fmt.Fprintln(cmd.OutOrStdout(), line)
	}
}

// nothingTested returns the error for a search in which no run reached a place.
func (f *exploreFlags) nothingTested(outcome *explore.Outcome) error {
	if !outcome.Complete {
		return fmt.Errorf("no run reached a place before the time of --budget=%s was used up; run the same command to continue the search", f.budget)
	}
	return fmt.Errorf("no run reached a place; found %d places; expected a workload in which %s sends writes or gets watch events", len(outcome.Plan.Places), f.runs.subject)
}

// options returns the options of the search for writes and watch events at which a fault makes a
// check fail. It starts no run.
func (f *exploreFlags) options(cmd *cobra.Command, name string) (explore.Options, error) {
	actions, err := explore.ParseActions(f.at, explore.Actions...)
	if err != nil {
		return explore.Options{}, fmt.Errorf("--at: %w", err)
	}
	if delayed := []explore.Action{explore.Held, explore.Late, explore.Stale}; cmd.Flags().Changed("delay") &&
		!slices.ContainsFunc(actions, func(a explore.Action) bool { return slices.Contains(delayed, a) }) {
		return explore.Options{}, fmt.Errorf("--delay has no effect without the faults %s: add one of them to --at, or omit --delay", nearest.List(delayed, "and"))
	}
	if err := checkSubject("subject", f.runs.subject); err != nil {
		return explore.Options{}, err
	}
	s, err := loadScenario(cmd.Context(), name, cmd.ErrOrStderr(), f.runs.subject)
	if err != nil {
		return explore.Options{}, err
	}
	f.runs.terminal = f.runs.newTerminal(cmd)
	if f.dir != "" {
		f.runs.out = "" // the command writes nothing to the directory of --out
	}
	all, err := f.runs.options(cmd, []*scenario.Scenario{s}) // if --subject is a subject file, also sets the controllers under test in s
	if err != nil {
		return explore.Options{}, err
	}
	parallel, err := f.runs.parallelRuns()
	if err != nil {
		return explore.Options{}, err
	}
	subject := all[0].Target.String()
	if f.dir == "" {
		base := filepath.Base(f.runs.subject)
		f.dir = filepath.Join(f.runs.out, "explore-"+s.Name+"-"+strings.TrimSuffix(base, filepath.Ext(base)))
	}
	dir, err := filepath.Abs(f.dir)
	return explore.Options{
		Scenario: s, Subject: subject, Provider: f.runs.provider, Actions: actions, Delay: f.delay, Directory: dir, Baseline: f.baseline, Parallel: parallel, Budget: f.budget,
		Clock: clock.RealClock{}, Start: f.start(cmd), Progress: func(message string) { f.runs.terminal.progress(s.Name, message) },
	}, err
}

// start returns a function that makes one run of the search for failures. The function calls its
// argument onRecord for each record of the run's history. It prints the run's progress only with
// --verbose.
func (f *exploreFlags) start(cmd *cobra.Command) func(context.Context, *scenario.Scenario, *baseline.Baseline, string, func(*history.Record)) (*reports.Run, error) {
	return func(ctx context.Context, s *scenario.Scenario, b *baseline.Baseline, out string, onRecord func(*history.Record)) (*reports.Run, error) {
		flags := f.runs
		flags.out, flags.seed = out, s.Seed // each run without faults has a seed of its own
		all, err := flags.options(cmd, []*scenario.Scenario{s})
		if err != nil {
			return nil, err
		}
		o := all[0]
		o.Baseline = b
		if verbose := o.OnRecord; verbose != nil {
			o.OnRecord = func(r *history.Record) { onRecord(r); verbose(r) }
		} else {
			o.OnRecord, o.Progress = onRecord, nil
		}
		return run.Run(ctx, o)
	}
}

// shrinkFailures shrinks one scenario for each group of runs in which the same check failed for
// the same reason. It takes the group's run with the fewest steps and faults. If this run belongs
// to several groups, shrinkFailures shrinks it once, for the check of the first group.
func (f *exploreFlags) shrinkFailures(cmd *cobra.Command, failed []reports.Run) error {
	done := map[string]bool{}
	for _, failure := range reports.FailedChecks(failed) {
		dir := failure.Run.Directory
		if done[dir] {
			continue
		}
		done[dir] = true
		smaller := shrinkFlags{runs: f.runs, check: failure.Check, failure: &failure}
		err := smaller.run(cmd, dir)
		if errors.Is(err, shrink.ErrNeverFails) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: the failure of %s cannot be shrunk: %v\n", dir, failure.Check, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
