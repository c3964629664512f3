package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// nightlyFlags are the flags of `gauntlet nightly`.
type nightlyFlags struct {
	huntFlags
	duration  time.Duration
	generated generatedFlags
}

func newNightly(code *int) *cobra.Command {
	flags := nightlyFlags{}
	cmd := &cobra.Command{
		Use:   "nightly [SCENARIO…]",
		Short: "Run scenarios with one seed after another until time is up",
		Long: `Run scenarios on every subject, with one seed after another, until time is up: those
that are named, or else all that gauntlet brings along, or, with --profile or --lean,
the one that each seed generates.

Runs that did not pass are kept. At the end each distinct failure is printed in
a line, with the smallest run that showed it; the same lines, and the reports of all
runs together, those that passed included, are in the directory nightly-TIME beside
them. gauntlet report makes one page of several nights.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			var err error
			*code, err = flags.run(cmd, names)
			return err
		},
	}
	f := cmd.Flags()
	flags.add(f)
	f.DurationVar(&flags.duration, "duration", 8*time.Hour, "how long runs are begun")
	flags.generated.profile(f)
	f.Uint64Var(&flags.runs.seed, "seed", 0, "the first round's seed; each round has the next one; 0 takes a random one")
	return cmd
}

// run hunts until time is up, and returns what the verdicts amount to.
func (f *nightlyFlags) run(cmd *cobra.Command, names []string) (int, error) {
	if f.duration <= 0 {
		return exitPass, fmt.Errorf("--duration: found %s; expected more than 0", f.duration)
	}
	generates := slices.ContainsFunc([]string{"profile", "lean"}, cmd.Flags().Changed)
	if generates && len(names) > 0 {
		return exitPass, fmt.Errorf("--profile, --lean and %s: expected them without scenarios, for those that are generated", names[0])
	}
	first := seedOf(f.runs.seed)
	round := func(seed uint64) ([]campaign.Attempt, error) {
		if generates {
			return f.seed(cmd, f.generated, seed)
		}
		return f.attempts(cmd, func() ([]*scenario.Scenario, error) { return loadScenarios(names) }, seed)
	}
	if _, err := round(first); err != nil {
		return exitPass, err // before anything is written
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "hunting for %s from seed %d on\n", f.duration, first)
	return f.hunt(cmd, "nightly", campaign.Options{Series: rounds(first, math.MaxUint64-1, round), Duration: f.duration})
}
