package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// outputFormat is the value of the flag --output.
type outputFormat string

// These are the output formats that the flag --output accepts.
const (
	asTable outputFormat = "table" // a table that people can read
	asJSON  outputFormat = "json"
	asYAML  outputFormat = "yaml"
)

var outputFormats = []string{string(asTable), string(asJSON), string(asYAML)}

// outputFlag adds the flag --output to a command. The flag's default is table. The argument usage
// is the flag's help text.
func outputFlag(cmd *cobra.Command, format *outputFormat, usage string) {
	*format = asTable
	cmd.Flags().VarP(format, "output", "o", usage)
}

func (f *outputFormat) String() string { return string(*f) }

// Type returns what the help text shows as the value of the flag: the names of all formats.
func (f *outputFormat) Type() string { return strings.Join(outputFormats, "|") }

// Set sets the format. It returns an error if the value is not the name of a format.
func (f *outputFormat) Set(value string) error {
	if !slices.Contains(outputFormats, value) {
		return fmt.Errorf("expected %s", nearest.List(outputFormats, "or"))
	}
	*f = outputFormat(value)
	return nil
}

// writeValue writes a value to the standard output of a command, as indented JSON or as YAML.
func writeValue(cmd *cobra.Command, format outputFormat, value any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return &unfinishedError{err}
	}
	if format == asYAML {
		converted, err := yaml.JSONToYAML(encoded.Bytes())
		if err != nil {
			return &unfinishedError{err}
		}
		return writeText(cmd, string(converted))
	}
	return writeText(cmd, encoded.String())
}

// writeDocument writes a value to standard output, as a line of JSON or as a YAML document. A
// command calls it once for each of several values. The argument encode is a function that writes
// the value as one line of JSON.
func writeDocument(cmd *cobra.Command, format outputFormat, encode func(io.Writer) error) error {
	var encoded bytes.Buffer
	if err := encode(&encoded); err != nil {
		return &unfinishedError{err}
	}
	if format == asYAML {
		converted, err := yaml.JSONToYAML(encoded.Bytes())
		if err != nil {
			return &unfinishedError{err}
		}
		return writeText(cmd, "---\n"+string(converted))
	}
	return writeText(cmd, encoded.String())
}

// writeText writes text to the standard output of a command. An interrupt ends a write that waits,
// for example for the reader of a pipe. After an interrupt, writeText still writes what the command
// has to say.
func writeText(cmd *cobra.Command, text string) error {
	write := func() (int, error) {
		n, err := io.WriteString(cmd.OutOrStdout(), text)
		if already := new(unfinishedError); err != nil && !errors.As(err, &already) {
			err = &unfinishedError{fmt.Errorf("writing the output: %w", err)}
		}
		return n, err
	}
	var err error
	if cmd.Context().Err() != nil {
		_, err = write()
	} else {
		_, err = orInterrupted(cmd.Context(), write)
	}
	return err
}

// terminalWidth returns the width of a terminal in characters. It returns 0 if out is not a
// terminal.
func terminalWidth(out io.Writer) int {
	file, ok := fileOf(out)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

const (
	// defaultWidth is the width of wrapped text if standard output is not a terminal.
	defaultWidth = 80
	// proseWidth is the maximum width of wrapped text on a wider terminal. Longer lines are hard
	// to read.
	proseWidth = 100
	// lastColumnMin is the minimum width to which a table wraps its last column.
	lastColumnMin = 24
)

// formatTable formats rows of cells as a table with aligned columns. The first row is the header.
//
// The last column is wrapped so that the table is not wider than width. If width is 0, nothing is
// wrapped.
func formatTable(rows [][]string, width int) string {
	if len(rows) == 0 {
		return ""
	}
	last := len(rows[0]) - 1
	widths := make([]int, last)
	before := 0 // the total width of the columns before the last one, with the gaps between columns
	for column := range widths {
		for _, row := range rows {
			widths[column] = max(widths[column], utf8.RuneCountInString(row[column]))
		}
		before += widths[column] + columnGap
	}
	var out strings.Builder
	for _, row := range rows {
		lines := []string{row[last]}
		if width > 0 {
			lines = strings.Split(text.WrapSoft(row[last], max(width-before, lastColumnMin)), "\n")
		}
		for i, line := range lines {
			var cells strings.Builder
			for column, cellWidth := range widths {
				cell := ""
				if i == 0 {
					cell = row[column]
				}
				fmt.Fprintf(&cells, "%-*s", cellWidth+columnGap, cell)
			}
			out.WriteString(strings.TrimRight(cells.String()+strings.TrimSpace(line), " ") + "\n")
		}
	}
	return out.String()
}

// columnGap is the number of spaces between two columns of a table.
const columnGap = 2
