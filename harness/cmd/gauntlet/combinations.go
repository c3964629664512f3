package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/combination"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// combinationsFlags has the values of the flags of "gauntlet coverage scenarios". This command
// counts how many scenarios have each combination of pods, operations and faults, such as a
// rollout of slow pods.
type combinationsFlags struct {
	tier      tierFlag
	generated generateFlags
	seeds     int // the number of generated scenarios to count; 0 to count built-in or named ones
	provider  string
}

func newCoverageScenarios() *cobra.Command {
	flags := combinationsFlags{tier: tierFlag(library.Full)}
	cmd := &cobra.Command{
		Use:   "scenarios [SCENARIO…]",
		Short: "Print which combinations of pods, operations and faults scenarios have",
		Long: `Print how many scenarios have each combination: a Deployment with a strategy, or a
Service; how its pods start and stop; what a user changes during a rollout; and which
watches of the subject lag, or whether a fault makes the subject list again. A dot means
none. The command reads scenarios and runs nothing. It therefore does not know whether
the parts of a combination happen at the same time or one after another.

Without SCENARIO, it counts the built-in scenarios of --tier. With --seeds, it counts
the scenarios that the seeds from 1 on generate.`,
		Example: `  gauntlet coverage scenarios
  gauntlet coverage scenarios --seeds=200 --profile=storm`,
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, names []string) error {
			scenarios, err := flags.scenarios(cmd, names)
			if err != nil {
				return err
			}
			var table combination.Table
			for _, s := range scenarios {
				table.Add(s)
			}
			return table.WriteText(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	flags.tier.add(f)
	f.IntVar(&flags.seeds, "seeds", 0, "how many generated scenarios to count, instead of built-in ones")
	flags.generated.addProfile(f)
	flags.generated.addDuration(f)
	providerFlag(f, &flags.provider)
	cmd.MarkFlagsMutuallyExclusive("tier", "seeds")
	return cmd
}

// scenarios returns the named, built-in or generated scenarios that the command reads. The
// command counts in how many of these scenarios each combination occurs, such as slow pods, a
// scale operation and late watch events.
func (f *combinationsFlags) scenarios(cmd *cobra.Command, names []string) ([]*scenario.Scenario, error) {
	if !cmd.Flags().Changed("seeds") {
		if err := checkTier(cmd, names); err != nil {
			return nil, err
		}
		for _, name := range []string{"profile", "duration", "prefer-uncovered"} {
			if cmd.Flags().Changed(name) {
				return nil, fmt.Errorf("--%s has no effect without --seeds: add --seeds, or omit --%s", name, name)
			}
		}
		runs := runFlags{tier: f.tier, provider: f.provider}
		return runs.loadScenarios(cmd.Context(), names, cmd.ErrOrStderr())
	}
	if err := checkCount("seeds", f.seeds, 1, generatedMax); err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("--seeds counts generated scenarios: omit --seeds, or omit the scenario %s", names[0])
	}
	var all []*scenario.Scenario
	for seed := range f.seeds {
		if err := interrupted(cmd.Context()); err != nil {
			return nil, err
		}
		s, err := f.generated.generate(uint64(seed)+1, f.provider)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
