package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// tierFlag is the value of the flag --tier.
type tierFlag library.Tier

// add adds the flag --tier. The current value is the default.
func (f *tierFlag) add(flags *pflag.FlagSet) {
	flags.Var(f, "tier", fmt.Sprintf("the built-in scenarios that run without SCENARIO: quick, default or full (default %q)", f))
	flags.Lookup("tier").DefValue = "" // pflag would print it without quotation marks
}

func (f *tierFlag) String() string { return string(*f) }

// Set sets the value to a known tier.
func (f *tierFlag) Set(value string) error {
	tier, err := library.ParseTier(value)
	*f = tierFlag(tier)
	return err
}

func (f *tierFlag) Type() string { return "tier" }

// checkTier returns an error if the flag --tier is set and other arguments already select the
// scenarios. The argument selected says whether they do.
func checkTier(cmd *cobra.Command, selected bool) error {
	if selected && cmd.Flags().Changed("tier") {
		return errors.New("--tier selects built-in scenarios: found it together with a scenario, --profile, --duration or --prefer-uncovered; expected only one of them")
	}
	return nil
}
