package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/reference"
)

func newList() *cobra.Command {
	var format outputFormat
	cmd := &cobra.Command{
		Use:   "list [SECTION [NAME…]]",
		Short: "List scenarios, checks, faults and other names",
		Long: `List what scenarios, reports and the command line can name. Without SECTION, list all
sections. SECTION is one of these:

` + sectionsHelp() + `
With NAME, list only these entries. The table has the first sentence of each
description. "gauntlet explain KIND/NAME" shows everything about one entry.

With -o json or -o yaml, the output is an object with a list for each section. Each
entry has kind, name and description, and the properties that "gauntlet explain" shows.`,
		Example: `  gauntlet list checks
  gauntlet list checks burst-limit slow-start
  gauntlet list faults -o json | jq -r '.faults[] | select(.providers | index("kind")) | .name'`,
		ValidArgsFunction: completeEntries,
		RunE: func(cmd *cobra.Command, args []string) error {
			sections := reference.Sections
			if len(args) > 0 {
				section, err := reference.SectionNamed(args[0])
				if err != nil {
					return err
				}
				sections = []reference.Section{*section}
			}
			listed := map[string][]reference.Entry{}
			for i := range sections {
				s := &sections[i]
				entries, err := entriesNamed(cmd, s, args[min(1, len(args)):])
				if err != nil {
					return err
				}
				listed[s.Name] = entries
			}
			if format != asTable {
				return writeValue(cmd, format, listed)
			}
			return writeText(cmd, sectionTables(sections, listed, terminalWidth(cmd.OutOrStdout())))
		},
	}
	outputFlag(cmd, &format, "the format of the output")
	return cmd
}

// sectionsHelp returns the lines of the help text that describe the sections of "gauntlet list". A
// section is, for example, checks.
func sectionsHelp() string {
	var rows [][]string
	for _, s := range reference.Sections {
		rows = append(rows, []string{" " + s.Name, s.Description})
	}
	return formatTable(rows, defaultWidth+5)
}

// entriesNamed returns the entries with the given names in a section of "gauntlet list", such as
// checks. Without names, it returns all entries of the section. For each old name, it prints a
// warning.
func entriesNamed(cmd *cobra.Command, s *reference.Section, names []string) ([]reference.Entry, error) {
	if len(names) == 0 {
		return s.Entries(), nil
	}
	var all []reference.Entry
	for _, name := range names {
		found, err := s.Find(name)
		if err != nil {
			return nil, err
		}
		warnRenamed(cmd, name, found)
		all = append(all, found...)
	}
	return all, nil
}

// sectionTables returns the output of "gauntlet list": a table for each section, such as checks.
// The key of the argument listed is a section's name, and the value has the entries that its
// table lists. If there are several sections, the section's name is the heading of each table.
func sectionTables(sections []reference.Section, listed map[string][]reference.Entry, width int) string {
	var out strings.Builder
	for i := range sections {
		s := &sections[i]
		if i > 0 {
			out.WriteString("\n")
		}
		if len(sections) > 1 {
			out.WriteString(strings.ToUpper(s.Name) + "\n\n")
		}
		out.WriteString(formatTable(sectionRows(s, listed[s.Name]), width))
	}
	return out.String()
}

// sectionRows returns the rows of the table that "gauntlet list" prints for a section, such as
// checks. The first row is the header. Each further row is an entry.
func sectionRows(s *reference.Section, entries []reference.Entry) [][]string {
	header := []string{"NAME"}
	for _, column := range s.Columns {
		header = append(header, reference.Label(column))
	}
	described := slices.ContainsFunc(entries, func(e reference.Entry) bool { return e.Description != "" })
	if described {
		header = append(header, "DESCRIPTION")
	}
	rows := [][]string{header}
	for _, e := range entries {
		row := []string{e.Name}
		for _, column := range s.Columns {
			row = append(row, reference.Words(e.Value(column)))
		}
		if described {
			row = append(row, firstSentence(e.Description))
		}
		rows = append(rows, row)
	}
	return rows
}

// sentenceEnd matches the end of a sentence that is followed by another sentence. firstSentence
// uses it.
var sentenceEnd = regexp.MustCompile(`[.?!] +\p{Lu}`)

// firstSentence returns the first sentence of a text. A text without a second sentence is returned
// whole.
func firstSentence(text string) string {
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		return text[:end[0]+1]
	}
	return text
}

func newVersion() *cobra.Command {
	var format outputFormat
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of gauntlet and of the control plane it builds",
		Long: `Print the versions of gauntlet and of the control plane it builds.

With -o json or -o yaml, the output is an object that maps each project to its version:
gauntlet, etcd, kubernetes and kwok.`,
		Example: `  gauntlet version
  gauntlet version -o json | jq -r .kubernetes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			versions := maps.Clone(providers.UpstreamVersions(""))
			versions["gauntlet"] = revision
			if format != asTable {
				return writeValue(cmd, format, versions)
			}
			lines := "gauntlet " + revision + "\n"
			for _, project := range slices.Sorted(maps.Keys(versions)) {
				if project != "gauntlet" {
					lines += project + " " + versions[project] + "\n"
				}
			}
			return writeText(cmd, lines)
		},
	}
	outputFlag(cmd, &format, "the format of the output")
	return cmd
}
