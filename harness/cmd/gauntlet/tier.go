package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// tierFlag is the value of the flag --tier, which selects a set of built-in scenarios such as
// quick.
type tierFlag library.Tier

// add adds the flag --tier to a command. The flag's default is the current value of f.
func (f *tierFlag) add(flags *pflag.FlagSet) {
	flags.Var(f, "tier", fmt.Sprintf("the built-in scenarios that run without SCENARIO: quick, default or full (default %q)", f))
	flags.Lookup("tier").DefValue = "" // otherwise, pflag adds the default to the usage text again, without quotation marks
}

func (f *tierFlag) String() string { return string(*f) }

// Set sets the value. It returns an error if there is no such tier.
func (f *tierFlag) Set(value string) error {
	tier, err := library.ParseTier(value)
	*f = tierFlag(tier)
	return err
}

// Type returns what the help text shows as the value of the flag: the names of all tiers.
func (f *tierFlag) Type() string { return strings.Join(tiers(), "|") }

// checkTier returns an error if --tier is set although names or flags select the scenarios. The argument
// flags has the flags that do so.
func checkTier(cmd *cobra.Command, names []string, flags ...string) error {
	if !cmd.Flags().Changed("tier") {
		return nil
	}
	var others []string
	if len(names) > 0 {
		others = append(others, "scenario "+names[0])
	}
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			others = append(others, "--"+flag)
		}
	}
	if others == nil {
		return nil
	}
	return fmt.Errorf("--tier selects built-in scenarios: omit --tier, or omit %s", nearest.List(others, "and"))
}
