package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// generateFlags has the values of the flags that decide how a scenario is generated. It does not
// have the seed and the provider, on which the scenario also depends.
type generateFlags struct {
	profile         string
	duration        time.Duration
	preferUncovered string // the path of a file that "gauntlet coverage --out" wrote; "" for none

	covered *coverage.Table // the table in that file; nil for none, or if the file has not been read
}

// addProfile adds to a command the flags --profile and --prefer-uncovered, which decide what a
// generated scenario contains.
func (f *generateFlags) addProfile(flags *pflag.FlagSet) {
	choiceFlag(flags, &f.profile, "profile", generate.DefaultProfile, profiles(), "how many operations and faults a generated scenario has: calm, steady, storm, slow, hours or orders")
	flags.StringVar(&f.preferUncovered, "prefer-uncovered", "", "a `file` that \"gauntlet coverage --out\" or \"gauntlet fleet collect\" wrote; a generated scenario prefers faults that acted rarely in the runs of that file")
}

// addDuration adds to a command the flag --duration, which is the duration of a generated
// workload.
func (f *generateFlags) addDuration(flags *pflag.FlagSet) {
	flags.DurationVar(&f.duration, "duration", 0, "how long the workload of a generated scenario lasts; 0 uses the duration of the profile")
}

// changed reports whether the command line sets one of the flags.
func (f *generateFlags) changed(cmd *cobra.Command) bool {
	return slices.ContainsFunc(shapingFlags, cmd.Flags().Changed)
}

// shapingFlags has the flags that decide which scenario a seed generates.
var shapingFlags = []string{"profile", "duration", "prefer-uncovered"}

// generate returns the scenario that the seed, the provider and the flags determine.
func (f *generateFlags) generate(seed uint64, provider string) (*scenario.Scenario, error) {
	profile, err := generate.ProfileNamed(f.profile)
	if err != nil {
		return nil, err
	}
	on, err := providers.Named(provider)
	if err != nil {
		return nil, err
	}
	if err := f.readCovered(); err != nil {
		return nil, err
	}
	s, err := generate.Scenario(generate.Options{Seed: seed, Profile: profile, Duration: f.duration, Provider: on, PreferUncovered: f.covered})
	if invalid := new(generate.OptionError); errors.As(err, &invalid) {
		return nil, fmt.Errorf("--%s: %w", invalid.Option, err)
	}
	return s, err
}

// readCovered reads the file of the flag --prefer-uncovered if the command line has this flag.
func (f *generateFlags) readCovered() error {
	if f.preferUncovered == "" || f.covered != nil {
		return nil
	}
	var err error
	if f.covered, err = readCoverage(f.preferUncovered); err != nil {
		return fmt.Errorf("--prefer-uncovered: %w", err)
	}
	return nil
}

func newGenerate() *cobra.Command {
	var flags generateFlags
	var seed uint64
	var provider string
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Print the scenario that a seed generates",
		Long: `Print the scenario that "gauntlet run" generates from a seed: its workload and its
faults. The same seed and the same --prefer-uncovered file give the same scenario,
byte for byte.`,
		Example: `  gauntlet generate --seed=7
  gauntlet generate --seed=7 --profile=storm > my-scenario.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.generate(seedOf(seed), provider)
			if err != nil {
				return err
			}
			text, err := s.Marshal()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&seed, "seed", 0, "the seed of all random choices; 0 picks a random one")
	flags.addProfile(f)
	flags.addDuration(f)
	providerFlag(f, &provider)
	return cmd
}
