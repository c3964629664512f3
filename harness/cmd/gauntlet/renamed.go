package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/internal/reference"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// renamedFlags maps the old names of renamed flags to their new names. VERSIONING.md says how
// long commands accept the old names.
var renamedFlags = map[string]string{
	"lean":     "prefer-uncovered",
	"displace": "controller-switch",
}

// warnRenamed prints a warning if a command line uses the old name of a check or of a built-in
// scenario. The argument path is a name, which the name of a section such as check may precede. The
// argument found has the entries with this name.
func warnRenamed(cmd *cobra.Command, path string, found []reference.Entry) {
	old := path[strings.LastIndex(path, "/")+1:]
	for _, e := range found {
		check, isCheck := scenario.RenamedCheck(old)
		renamed, isScenario := scenario.RenamedScenario(old)
		if e.Kind == "check" && isCheck && e.Name == check || e.Kind == "scenario" && isScenario && e.Name == renamed {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", scenario.RenameWarning(old, e.Name))
		}
	}
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
