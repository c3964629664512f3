package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/harness/internal/reference"
	"github.com/kube-gauntlet/gauntlet/harness/internal/standing"
	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// flagValues has a function for each flag with known values, by the name of the flag. Each
// function returns the values that shell completion offers. A flag without a function takes a
// file or any text.
var flagValues = map[string]func(*cobra.Command) []string{
	"subject":  func(*cobra.Command) []string { return subjects },
	"subjects": func(*cobra.Command) []string { return subjects },
	"provider": providersOf,
	"tier":     func(*cobra.Command) []string { return tiers() },
	"profile":  func(*cobra.Command) []string { return profiles() },
	"check":    func(*cobra.Command) []string { return checkIDs() },
	"at":       actionsOf,
	"output":   func(*cobra.Command) []string { return outputFormats },
}

// subjects has the values of the flag --subject that shell completion offers. Values that end with
// a colon need more text.
var subjects = []string{"ours", "upstream", "exec:", "image:"}

// completeFlags registers shell completion for the flags of a command and of all its subcommands.
func completeFlags(cmd *cobra.Command) {
	for name, values := range flagValues {
		if flag := cmd.Flags().Lookup(name); flag == nil || (name == "output" && flag.Value.Type() == "string") {
			continue // the flag --output of "gauntlet image" takes a file, not a format
		}
		err := cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return values(cmd), cobra.ShellCompDirectiveNoFileComp
		})
		if err != nil {
			panic(err) // impossible: no flag gets a second completion function
		}
	}
	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}

// providersOf returns the providers that a command accepts in the flag --provider.
func providersOf(cmd *cobra.Command) []string {
	switch cmd.Name() {
	case "up":
		return providers.With(cluster.StandingClusters)
	case "clean":
		return []string{providers.Existing}
	}
	return providers.Names()
}

// tiers returns the names of the scenario library's tiers, such as quick, for shell completion.
func tiers() []string {
	var names []string
	for _, tier := range library.Tiers {
		names = append(names, string(tier))
	}
	return names
}

// profiles returns the names of the profiles, such as calm, for shell completion. A profile says
// how much happens in a generated scenario.
func profiles() []string {
	var names []string
	for _, p := range generate.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// checkIDs returns the IDs of all checks, such as converged. Shell completion offers them.
func checkIDs() []string {
	var ids []string
	for _, c := range check.All {
		ids = append(ids, c.ID)
	}
	return ids
}

// actionsOf returns the names of the faults that a command accepts in the flag --at, for shell
// completion. "gauntlet explore" accepts more faults than "gauntlet sweep crash".
func actionsOf(cmd *cobra.Command) []string {
	if cmd.Name() == "explore" {
		return actionNames(explore.Actions)
	}
	return actionNames(writeActions)
}

// completeScenarios offers the names of built-in scenarios and files for shell completion.
func completeScenarios(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, s := range library.All() {
		if strings.HasPrefix(s.Name, typed) {
			names = append(names, s.Name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

// completeMutants offers the IDs of mutants for shell completion.
func completeMutants(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return mutants.IDs(), cobra.ShellCompDirectiveNoFileComp
}

// completeStanding offers the names of standing clusters, which "gauntlet up" started, for shell
// completion.
func completeStanding(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	found, err := standing.List(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, c := range found {
		if c.State == standing.Standing {
			names = append(names, c.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeEntries offers arguments of "gauntlet list" for shell completion. The first argument is
// the name of a section, such as checks. The further arguments are names of entries in that
// section.
func completeEntries(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return reference.SectionNames(), cobra.ShellCompDirectiveNoFileComp
	}
	section, err := reference.SectionNamed(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return section.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completePaths offers arguments of "gauntlet explain" for shell completion. An argument is a
// section and a name, such as fault/watch-delay, or a path of fields, such as scenario.settle.
func completePaths(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	if at := strings.LastIndex(typed, "."); at >= 0 {
		parents, err := reference.Find(typed[:at])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, name := range fieldNames(parents[0].Fields) {
			all = append(all, typed[:at]+"."+name)
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	if kind, _, ok := strings.Cut(typed, "/"); ok {
		section, err := reference.SectionNamed(kind)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, name := range section.Names() {
			all = append(all, kind+"/"+name)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
	for _, s := range reference.Sections {
		all = append(all, s.Singular+"/")
	}
	return append(all, "scenario."), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// fieldNames returns the names of scenario fields, which shell completion offers.
func fieldNames(fields []schema.Field) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}
