package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/reference"
)

func newExplain() *cobra.Command {
	var format outputFormat
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME|FIELD",
		Short: "Explain a check, a fault, a field of a scenario or another name",
		Long: `Explain what scenarios, reports and the command line can name: what it is, its
properties and fields, an example, and the page of the documentation. For a check, the
command also prints the statements of the contract that promise it. It needs neither
a source tree nor a network.

KIND is one of the sections of "gauntlet list", in the singular. FIELD is the path of
a field of a scenario, such as scenario.settle.quiet. A NAME without KIND is looked up
in all sections.`,
		Example: `  gauntlet explain check/max-surge
  gauntlet explain fault/watch-delay
  gauntlet explain fault/watch-delay.delay
  gauntlet explain operation/scale
  gauntlet explain trigger/request
  gauntlet explain kind/Deployment
  gauntlet explain scenario.faults.watch-delay
  gauntlet explain known-issue/stuck-scaling -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := reference.Find(args[0])
			if err != nil {
				return err
			}
			warnRenamed(cmd, args[0], found)
			if format != asTable {
				return writeValue(cmd, format, found)
			}
			width := terminalWidth(cmd.OutOrStdout())
			if width == 0 {
				width = defaultWidth
			}
			var all []string
			for i := range found {
				all = append(all, found[i].Text(min(width, proseWidth)))
			}
			return writeText(cmd, strings.Join(all, "\n---\n\n"))
		},
	}
	outputFlag(cmd, &format, "the format of the output; json and yaml have a list, because several entries may have the same name")
	return cmd
}
