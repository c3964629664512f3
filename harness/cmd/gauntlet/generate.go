package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/generate"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// generatedFlags say what is to be generated, beside seed and provider.
type generatedFlags struct {
	profileName string
	lasts       time.Duration
	lean        string // a file of a coverage
}

func (f *generatedFlags) profile(flags *pflag.FlagSet) {
	flags.StringVar(&f.profileName, "profile", generate.DefaultProfile, "how much goes on in a scenario that is generated: calm, steady or storm")
	flags.StringVar(&f.lean, "lean", "", "a `file` that gauntlet coverage wrote: faults that it has little of are preferred in a scenario that is generated")
}

func (f *generatedFlags) duration(flags *pflag.FlagSet) {
	flags.DurationVar(&f.lasts, "duration", 0, "how long the workload of a scenario that is generated goes on; 0 is the profile's own time")
}

func (f *generatedFlags) scenario(seed uint64, provider string) (*scenario.Scenario, error) {
	profile, err := generate.ProfileNamed(f.profileName)
	if err != nil {
		return nil, err
	}
	options := generate.Options{Seed: seed, Profile: profile, Duration: f.lasts, Provider: provider}
	if f.lean != "" {
		if options.PreferUncovered, err = readCoverage(f.lean); err != nil {
			return nil, fmt.Errorf("--lean: %w", err)
		}
	}
	return generate.Scenario(options)
}

func newGenerate() *cobra.Command {
	var flags generatedFlags
	var seed uint64
	var provider string
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Print the scenario of a seed",
		Long: `Print the scenario that gauntlet run generates from a seed: what users do, and
what goes wrong. The same seed, and the same file to lean away from, give the same
scenario, byte for byte.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.scenario(seedOf(seed), provider)
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
	f.Uint64Var(&seed, "seed", 0, "where random draws start; 0 takes a random one")
	flags.profile(f)
	flags.duration(f)
	providerFlag(f, &provider)
	return cmd
}
