package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

func newList() *cobra.Command {
	sections := []struct {
		name string
		list func(io.Writer)
	}{
		{"scenarios", listScenarios},
		{"faults", listFaults},
		{"checks", listChecks},
		{"kinds", listKinds},
		{"controllers", listControllers},
	}
	var names []string
	for _, section := range sections {
		names = append(names, section.name)
	}
	return &cobra.Command{
		Use:       "list [" + strings.Join(names, "|") + "]",
		Short:     "List scenarios, faults, checks, kinds and controllers",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: names,
		Run: func(cmd *cobra.Command, args []string) {
			for _, section := range sections {
				switch {
				case len(args) == 0:
					fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n", strings.ToUpper(section.name))
				case args[0] != section.name:
					continue
				}
				section.list(cmd.OutOrStdout())
			}
		},
	}
}

// listScenarios writes the name, the smallest tier and the description of each built-in scenario.
func listScenarios(out io.Writer) {
	for _, s := range library.All() {
		fmt.Fprintf(out, "%s (%s)\n%s\n", s.Name, library.TierOf(s.Name), wrapIndented(1, s.Description))
	}
}

// listFaults writes each fault type: description, parameters, healing and providers.
func listFaults(out io.Writer) {
	for _, kind := range catalog.All {
		fmt.Fprintf(out, "%s\n%s", kind.Name, wrapIndented(1, kind.Description))
		for _, param := range kind.Params {
			value := "required"
			if param.Default != "" {
				value = "default: " + param.Default
			}
			fmt.Fprintf(out, "    %s\n%s", param.Name, wrapIndented(2, fmt.Sprintf("%s Values: %s; %s.", param.Description, param.Bounds, value)))
		}
		fmt.Fprintf(out, "%s%s\n", wrapIndented(1, "Healing: "+kind.Healing), wrapIndented(1, "On: "+strings.Join(providers.With(kind.Needs...), ", ")))
	}
}

// listChecks writes each check: guarantee, contract and allowed behaviors.
func listChecks(out io.Writer) {
	for _, c := range check.All {
		written := "Contract: " + c.Contract + "."
		if len(c.AllowedBehaviors) > 0 {
			written += " Allowed behaviors: " + strings.Join(c.AllowedBehaviors, ", ") + "."
		}
		fmt.Fprintf(out, "%s (%s, %s)\n%s%s\n", c.ID, c.Property, scopeWord(c.Scope), wrapIndented(1, c.Guarantee), wrapIndented(1, written))
	}
}

// listKinds writes the known kinds of objects as a table.
func listKinds(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSHORT\tAPIVERSION\tKIND")
	for _, kind := range kube.Kinds {
		scope := ""
		if kind.ClusterScoped {
			scope = " (cluster)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s%s\n", kind.GVR.Resource, kind.ShortName, kind.APIVersion(), kind.Name, scope)
	}
	table.Flush()
	fmt.Fprintln(out)
}

// listControllers writes each controller that can be under test: the kinds that it watches and
// writes, and its traits. A trait, such as slow-start, says how the controller works.
func listControllers(out io.Writer) {
	for _, c := range kube.Controllers {
		traits := "No contract: only the general checks apply"
		if len(c.Traits) > 0 {
			traits = "Traits: " + joinTexts(c.Traits)
		}
		fmt.Fprintf(out, "%s\n%s%s\n", c.Name,
			wrapIndented(1, fmt.Sprintf("Watches: %s. Writes: %s.", strings.Join(c.Watches, ", "), strings.Join(c.Writes, ", "))), wrapIndented(1, traits+"."))
	}
}

// joinTexts joins texts, separated by commas.
func joinTexts[T ~string](texts []T) string {
	joined := make([]string, 0, len(texts))
	for _, text := range texts {
		joined = append(joined, string(text))
	}
	return strings.Join(joined, ", ")
}

// wrapIndented indents a text by four spaces for each step, and wraps it at 80 columns.
func wrapIndented(steps int, words string) string {
	margin := strings.Repeat("    ", steps)
	var out strings.Builder
	for line := range strings.Lines(text.WrapSoft(words, 80-len(margin))) {
		out.WriteString(margin + strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of gauntlet and of the control plane it builds",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "gauntlet %s\n", revision)
			versions := providers.UpstreamVersions("")
			for _, project := range slices.Sorted(maps.Keys(versions)) {
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", project, versions[project])
			}
		},
	}
}

// scopeWord says whether a check applies to every controller or is part of a contract.
func scopeWord(s check.Scope) string {
	if s.General() {
		return "general"
	}
	return "of a contract"
}
