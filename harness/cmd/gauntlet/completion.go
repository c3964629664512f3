package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/reference"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// completeEntries completes the arguments of "gauntlet list": a section, and names of its entries.
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

// completePaths completes the argument of "gauntlet explain": the kind, then the name, or the
// next field of a path.
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

// fieldNames returns the names of fields.
func fieldNames(fields []schema.Field) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}
