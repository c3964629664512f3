package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
)

func newSweep(code *int) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Run a scenario for each seed of a range, or for each write of the subject",
		Example: `  gauntlet sweep seeds --from=1 --to=100
  gauntlet sweep crash rollout`,
	}
	cmd.AddCommand(newSweepSeeds(code), newSweepCrash(code))
	return cmd
}

// sweepSeedsFlags has the values of the flags of "gauntlet sweep seeds". This command runs the
// scenario that each seed of a range generates.
type sweepSeedsFlags struct {
	campaignFlags
	generated generateFlags
	from, to  uint64 // the first and the last seed
}

func newSweepSeeds(code *int) *cobra.Command {
	flags := sweepSeedsFlags{}
	cmd := &cobra.Command{
		Use:   "seeds --from=N --to=N",
		Short: "Run the generated scenario of each seed in a range",
		Long: `Run the scenario that each seed of a range generates, on every subject.

The directories of runs that passed are deleted, the others are kept. At the end the
command prints one line for each failure group. The directory seeds-TIME contains the
same lines and the reports of all runs.`,
		Example: `  gauntlet sweep seeds --from=1 --to=100
  gauntlet sweep seeds --to=20 --profile=storm --subjects=exec:./my-kcm`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			*code, err = flags.run(cmd)
			return err
		},
	}
	f := cmd.Flags()
	flags.add(f)
	flags.generated.addProfile(f)
	flags.generated.addDuration(f)
	f.Uint64Var(&flags.from, "from", 1, "the first seed")
	f.Uint64Var(&flags.to, "to", 20, "the last seed")
	return cmd
}

// sweepSeedsMax is the maximum number of seeds of one sweep.
const sweepSeedsMax = 1_000_000

// run runs the scenario that each seed generates, and returns the exit code for the verdicts.
func (f *sweepSeedsFlags) run(cmd *cobra.Command) (int, error) {
	if f.from < 1 || f.to < f.from {
		return exitPass, fmt.Errorf("--from=%d --to=%d: --from must be at least 1, and --to must not be less than --from", f.from, f.to)
	}
	if f.to == math.MaxUint64 {
		return exitPass, fmt.Errorf("--to=%d: expected at most %d", f.to, uint64(math.MaxUint64-1))
	}
	if f.to-f.from >= sweepSeedsMax {
		return exitPass, fmt.Errorf("--from=%d --to=%d: found %d seeds; expected at most %d", f.from, f.to, f.to-f.from+1, sweepSeedsMax)
	}
	round := func(seed uint64) ([]campaign.Attempt, error) { return f.attemptsOfSeed(cmd, f.generated, seed) }
	if _, err := round(f.from); err != nil {
		return exitPass, err // the options are wrong; no run has started
	}
	f.runs.announce(cmd, "running the generated scenarios of seeds %d to %d\n", f.from, f.to)
	return f.runCampaign(cmd, "seeds", campaign.Options{
		Series: seriesOfRounds(f.from, f.to, round), Planned: int(f.to-f.from+1) * len(f.subjects),
	})
}
