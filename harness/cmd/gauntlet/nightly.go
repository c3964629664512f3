package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// nightlyFlags has the values of the flags of "gauntlet nightly", which runs scenarios for a given
// time.
type nightlyFlags struct {
	campaignFlags
	duration  time.Duration
	generated generateFlags
}

func newNightly(code *int) *cobra.Command {
	flags := nightlyFlags{campaignFlags: campaignFlags{runs: runFlags{tier: tierFlag(library.Full)}}}
	cmd := &cobra.Command{
		Use:   "nightly [SCENARIO…]",
		Short: "Run scenarios with one seed after another for a given duration",
		Long: `Run scenarios on every subject, with one seed after another, until --duration has
passed. Without SCENARIO, the built-in scenarios of --tier run. With --profile or
--prefer-uncovered, each seed generates the scenario to run.

The directories of runs that passed are deleted, the others are kept. At the end the
command prints one line for each failure group: the failed check, the resource, the
reason, how many runs show it, and the smallest of these runs. The directory
nightly-TIME contains the same lines and the reports of all runs. "gauntlet report"
makes one page of several such directories.`,
		Example: `  gauntlet nightly --duration=8h
  gauntlet nightly --profile=storm --subjects=ours
  gauntlet nightly rollout burst --duration=1h --seed=1`,
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, names []string) error {
			var err error
			*code, err = flags.run(cmd, names)
			return err
		},
	}
	f := cmd.Flags()
	flags.add(f)
	f.DurationVar(&flags.duration, "duration", 8*time.Hour, "the time after which no new run starts")
	flags.runs.tier.add(f)
	flags.generated.addProfile(f)
	f.Uint64Var(&flags.runs.seed, "seed", 0, "the seed of the first round; each further round uses the next one; 0 picks a random one")
	return cmd
}

// run starts new runs, with one seed after another, until --duration has passed. It returns the
// exit code for the verdicts.
func (f *nightlyFlags) run(cmd *cobra.Command, names []string) (int, error) {
	if f.duration <= 0 {
		return exitPass, fmt.Errorf("--duration: found %s; expected more than 0", f.duration)
	}
	generatorFlags := []string{"profile", "prefer-uncovered"}
	generates := slices.ContainsFunc(generatorFlags, cmd.Flags().Changed)
	if generates && len(names) > 0 {
		return exitPass, fmt.Errorf("--profile and --prefer-uncovered apply to generated scenarios only: omit these flags, or omit the scenario %s", names[0])
	}
	if err := checkTier(cmd, names, generatorFlags...); err != nil {
		return exitPass, err
	}
	if err := checkSeeds(f.runs.seed, 2); err != nil { // the number of rounds is not known
		return exitPass, err
	}
	first := seedOf(f.runs.seed)
	var skipped bytes.Buffer // which scenarios of a tier are skipped; printed only if the options are valid
	warnings := cmd.ErrOrStderr()
	if len(names) == 0 {
		warnings = &skipped
	}
	round := func(seed uint64) ([]campaign.Attempt, error) {
		if generates {
			return f.attemptsOfSeed(cmd, f.generated, seed)
		}
		return f.attemptsOf(cmd, func() ([]*scenario.Scenario, error) {
			scenarios, err := f.runs.loadScenarios(cmd.Context(), names, warnings)
			warnings = io.Discard // later rounds load the same scenarios and would repeat the warnings
			return scenarios, err
		}, seed)
	}
	if _, err := round(first); err != nil {
		return exitPass, err // the options are wrong; no run has started
	}
	fmt.Fprint(cmd.ErrOrStderr(), skipped.String())
	f.runs.announce(cmd, "starting runs for %s, beginning with seed %d\n", f.duration, first)
	return f.runCampaign(cmd, "nightly", campaign.Options{Series: seriesOfRounds(first, math.MaxUint64-1, round), Duration: f.duration})
}
