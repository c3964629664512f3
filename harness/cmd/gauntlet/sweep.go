package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/campaign"
)

func newSweep(code *int) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Run everything of a kind, and keep what did not pass",
	}
	cmd.AddCommand(newSweepSeeds(code), newSweepCrash(code))
	return cmd
}

// sweepSeedsFlags are the flags of `gauntlet sweep seeds`.
type sweepSeedsFlags struct {
	huntFlags
	generated generatedFlags
	from, to  uint64
}

func newSweepSeeds(code *int) *cobra.Command {
	flags := sweepSeedsFlags{}
	cmd := &cobra.Command{
		Use:   "seeds --from=N --to=N",
		Short: "Run the scenarios that a range of seeds generates",
		Long: `Run the scenario that each seed of a range generates, on every subject.

Runs that did not pass are kept. At the end each distinct failure is printed in
a line; the same lines, and the reports of the runs that were kept, are in the
directory seeds-TIME beside them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			*code, err = flags.run(cmd)
			return err
		},
	}
	f := cmd.Flags()
	flags.add(f)
	flags.generated.profile(f)
	flags.generated.duration(f)
	f.Uint64Var(&flags.from, "from", 1, "the first seed")
	f.Uint64Var(&flags.to, "to", 20, "the last seed")
	return cmd
}

// run makes the runs of all seeds, and returns what the verdicts amount to.
func (f *sweepSeedsFlags) run(cmd *cobra.Command) (int, error) {
	if f.from < 1 || f.to < f.from || f.to == math.MaxUint64 {
		return exitPass, fmt.Errorf("--from=%d --to=%d: expected the first seed, from 1 on, and the last", f.from, f.to)
	}
	round := func(seed uint64) ([]campaign.Attempt, error) { return f.seed(cmd, f.generated, seed) }
	if _, err := round(f.from); err != nil {
		return exitPass, err // before anything is written
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "sweeping through the seeds %d to %d\n", f.from, f.to)
	return f.hunt(cmd, "seeds", campaign.Options{Series: rounds(f.from, f.to, round)})
}
