package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// renamedFlags maps the old name of a flag to its name since the last release. Old names
// are accepted until the next release; see VERSIONING.md.
var renamedFlags = map[string]string{
	"lean":     "prefer-uncovered",
	"displace": "controller-switch",
}

// acceptRenamedFlags makes all commands accept the old names of flags. The first use of
// each prints a warning to standard error.
func acceptRenamedFlags(root *cobra.Command) {
	warned := map[string]bool{}
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		current, old := renamedFlags[name]
		if !old {
			return pflag.NormalizedName(name)
		}
		if !warned[name] {
			warned[name] = true
			fmt.Fprintf(root.ErrOrStderr(), "warning: --%s is now --%s; the old name is accepted until the next release\n", name, current)
		}
		return pflag.NormalizedName(current)
	})
}
