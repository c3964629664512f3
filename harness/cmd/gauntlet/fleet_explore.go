package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// fleetExploreFlags has the values of the flags of "gauntlet fleet explore". This command searches
// for failures in the pods of a Job.
type fleetExploreFlags struct {
	fleetCampaignFlags
	fleetLaunchFlags
}

func newFleetExplore(code *int) *cobra.Command {
	var flags fleetExploreFlags
	all := actionNames(explore.Actions)
	cmd := &cobra.Command{
		Use:   "explore NAME SCENARIO...",
		Short: "Explore scenarios in the pods of an Indexed Job",
		Long: `Explore built-in scenarios, as "gauntlet explore" does. Each scenario with each subject is an
index of the Job. If a pod is killed, the next pod continues its search.

The commands status, collect and delete accept NAME. After collect, each search that found
failures has one directory, with its plan, its report and the runs that failed.`,
		Example: `  gauntlet fleet explore places rollout burst --budget=2h --claim=results
  gauntlet fleet explore stale rollout --at=stale --subjects=ours,upstream --store=s3://bucket/fleets`,
		ValidArgsFunction: completeScenarios,
		Args:              cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := errors.Join(flags.plan(args[0], args[1:]), flags.fleetPodFlags.complete()); err != nil {
				return err
			}
			*code, err = flags.launch(cmd, &flags.campaign)
			return err
		},
	}
	f := cmd.Flags()
	flags.addSubjects(f)
	f.DurationVar(&flags.campaign.Budget, "budget", 30*time.Minute, "how long each scenario is explored on each subject; 0 means until every place was tried")
	f.StringSliceVar(&flags.campaign.Faults, "at", all, "the faults to inject: "+strings.Join(all, ", "))
	flags.fleetLaunchFlags.add(f)
	return cmd
}

// plan completes f.campaign, so that the campaign explores each scenario on each subject. Each
// such combination is a unit, which one pod of the Job explores.
func (f *fleetExploreFlags) plan(name string, scenarios []string) error {
	c := &f.campaign
	c.Provider = providers.Embedded // operators and images do not run in virtual time
	if err := checkFleetSubjects(c.Subjects, c.Provider); err != nil {
		return err
	}
	if _, err := explore.ParseActions(c.Faults, explore.Actions...); err != nil {
		return fmt.Errorf("--at: %w", err)
	}
	if err := checkBudget(c.Budget); err != nil {
		return err
	}
	c.Name, c.Seeds, c.PerPod = name, fleet.Seeds{First: 1, Last: 1}, 1
	for _, scenario := range scenarios {
		if err := checkInPods(scenario, c.Subjects, c.Provider); err != nil {
			return err
		}
		for _, subject := range c.Subjects {
			c.Units = append(c.Units, fleet.Unit{Seed: c.Seeds.First, Subject: subject, Scenario: scenario})
		}
	}
	return c.Validate()
}

// exploreBaseline is the number of runs without faults with which the search of a pod begins.
const exploreBaseline = 3

// prepareExplore returns a function that explores the scenario of the unit u in a pod. The function
// returns one run that stands for all runs of the search; see summarizeSearch.
func (f *fleetWorkerFlags) prepareExplore(cmd *cobra.Command, worker *fleet.Worker, u fleet.Unit) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		search := exploreFlags{runs: f.runs, at: f.campaign.Faults, baseline: exploreBaseline, budget: f.campaign.Budget, delay: explore.DefaultDelay}
		search.runs.subject, search.runs.seed, search.dir = u.Subject, u.Seed, filepath.Join(f.runs.out, "explore")
		o, err := search.options(cmd, u.Scenario)
		if err != nil {
			return nil, err
		}
		if err := restoreSearch(ctx, worker, u, o.Directory); err != nil {
			return nil, err
		}
		start := o.Start
		o.Start = func(ctx context.Context, s *scenario.Scenario, b *baseline.Baseline, out string, onRecord func(*history.Record)) (*reports.Run, error) {
			// Before each run, the directory contains the results of all earlier runs.
			if err := saveSearch(ctx, worker, u, o.Directory); err != nil {
				return nil, err
			}
			return start(ctx, s, b, out, onRecord)
		}
		begun := time.Now()
		outcome, err := explore.Run(ctx, o)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		printOutcome(cmd, outcome)
		if err := reportCampaign(cmd, o.Directory, campaign.Results{Runs: outcome.Runs(), Failed: outcome.Failed, Passed: outcome.Passed}); err != nil {
			return nil, err
		}
		result := summarizeSearch(outcome)
		result.Scenario, result.Subject, result.Seed, result.Provider = u.Scenario, u.Subject, u.Seed, f.campaign.Provider
		result.Started, result.Directory, result.Reproduce = begun, o.Directory, f.campaign.Command(u)
		return result, nil
	}
}

// summarizeSearch returns one run that stands for all runs of a search by explore. The returned
// run has the worst verdict of the failed runs, or pass if no run failed. The verdict is unknown if no
// run reached a place. For each check that did not pass in all runs, it has the worst result.
func summarizeSearch(outcome *explore.Outcome) *reports.Run {
	summary := &reports.Run{Verdict: check.Pass, Reason: fmt.Sprintf("runs: %d; failed runs: %d; search complete: %t", outcome.Runs(), len(outcome.Failed), outcome.Complete)}
	if outcome.Runs() == 0 {
		summary.Verdict = check.Unknown
	}
	for _, run := range outcome.Failed {
		summary.Verdict = check.Worst(summary.Verdict, run.Verdict)
		for _, result := range run.Results {
			at := slices.IndexFunc(summary.Results, func(r check.Result) bool { return r.Check == result.Check })
			switch {
			case result.Verdict == check.Pass || result.Verdict == check.NotExercised:
			case at < 0:
				summary.Results = append(summary.Results, result)
			case check.Worst(summary.Results[at].Verdict, result.Verdict) != summary.Results[at].Verdict:
				summary.Results[at] = result
			}
		}
	}
	return summary
}

// restoreSearch creates the directory of a search for the unit u. If earlier pods have begun the
// search, it writes their plan and results to the directory.
func restoreSearch(ctx context.Context, worker *fleet.Worker, u fleet.Unit, dir string) error {
	saved, err := worker.Journal(ctx, u)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	if len(saved) == 0 {
		return os.MkdirAll(dir, 0o755)
	}
	return fleet.Extract(saved, dir)
}

// saveSearch saves the directory of a search in the store, so that the next pod can continue the
// search. It saves nothing if the directory has no plan yet.
func saveSearch(ctx context.Context, worker *fleet.Worker, u fleet.Unit, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, explore.PlanName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	archive, err := fleet.Compress(dir)
	if err != nil {
		return err
	}
	return worker.SaveJournal(ctx, u, archive)
}
