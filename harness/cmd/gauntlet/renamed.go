package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// renamedFlags maps the old names of renamed flags to their new names. VERSIONING.md says how
// long commands accept the old names.
var renamedFlags = map[string]string{
	"lean":     "prefer-uncovered",
	"displace": "controller-switch",
}

// acceptRenamedFlags makes all commands accept the old names of flags. When a command line first
// uses an old name, gauntlet prints a warning to standard error.
func acceptRenamedFlags(root *cobra.Command) {
	warned := map[string]bool{}
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		current, old := renamedFlags[name]
		if !old {
			return pflag.NormalizedName(name)
		}
		if !warned[name] {
			warned[name] = true
			fmt.Fprintln(root.ErrOrStderr(), "warning:", scenario.RenameWarning("--"+name, "--"+current))
		}
		return pflag.NormalizedName(current)
	})
}
