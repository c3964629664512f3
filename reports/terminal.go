package reports

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

const (
	// maxWidth is the maximum width of the terminal output, in characters. It is also the width of
	// output that does not go to a terminal.
	maxWidth = 100
	// scopesWidth is the minimum width of a terminal at which a table has the column scope, in
	// characters.
	scopesWidth = 90
	// minWidth is the minimum width at which lines are wrapped, in characters. A narrower terminal
	// gets lines of this width.
	minWidth = 80
)

// Terminal writes runs as text for a terminal. It writes the failures with their evidence, tables
// with the verdict of each check, and the run directories.
//
// The argument width is the terminal's width in characters. A width of 0 means that the output
// does not go to a terminal. The text then has no escape sequences for colors.
func Terminal(w io.Writer, runs []Run, width int) error {
	p := layout{color: width > 0, width: maxWidth}
	if width > 0 {
		p.width = min(max(width, minWidth), maxWidth)
	}
	var b strings.Builder
	runs = printableRuns(runs)
	for _, run := range sorted(runs) {
		p.failures(&b, &run)
	}
	if len(runs) == 1 {
		p.resultTable(&b, &runs[0])
	} else {
		p.resultMatrices(&b, withDirectory(sorted(runs)))
	}
	p.locations(&b, withDirectory(sorted(runs)))
	verdict, reason := summarize(runs)
	blankLine(&b)
	fmt.Fprintf(&b, "%s  %s\n", p.verdict(verdict), reason)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the verdicts: %w", err)
	}
	return nil
}

// blankLine writes a blank line that separates two parts of the text. It writes nothing at the
// start of the text.
func blankLine(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteString("\n")
	}
}

// layout says how to format text for a terminal: whether to use colors, and the width in
// characters.
type layout struct {
	color bool
	width int
}

// verdictColors has the color of each verdict on a terminal.
var verdictColors = map[check.Verdict]text.Colors{
	check.Fail:          {text.FgRed, text.Bold},
	check.Unknown:       {text.FgYellow, text.Bold},
	check.KnownUpstream: {text.FgYellow},
	check.Pass:          {text.FgGreen},
	check.NotExercised:  {text.Faint},
}

// verdict formats a verdict, with its color if p.color is true. It writes fail and unknown in
// capital letters, because these verdicts need attention.
func (p layout) verdict(v check.Verdict) string {
	word := string(v)
	if v == check.Fail || v == check.Unknown {
		word = strings.ToUpper(word)
	}
	if p.color {
		return verdictColors[v].Sprint(word)
	}
	return word
}

// failures writes those results of a run that did not pass, with their reasons.
//
// Checks that are unknown for the same reason and have no evidence share a paragraph. If no result
// explains the run's verdict, failures also writes the run's own reason.
func (p layout) failures(b *strings.Builder, run *Run) {
	if run.worseThanResults() && !needsNoExplanation(run.Verdict) {
		blankLine(b)
		p.paragraph(b, "", fmt.Sprintf("%s %s: %s", p.verdict(run.Verdict), run.Scenario, run.Reason))
	}
	if run.Undecided() {
		blankLine(b)
		listed, _ := run.listedResults()
		p.paragraph(b, "", fmt.Sprintf("%s %s, all %d checks: %s", p.verdict(run.Verdict), run.Scenario, len(listed), listed[0].Reason))
		return
	}
	unknown := map[string][]string{} // the IDs of unknown checks, by the reason
	for _, result := range run.notPassed() {
		if result.Verdict == check.Unknown && len(result.Evidence) == 0 {
			unknown[result.Reason] = append(unknown[result.Reason], result.Check)
			continue
		}
		p.failure(b, run, result)
	}
	for _, reason := range slices.Sorted(maps.Keys(unknown)) {
		blankLine(b)
		p.paragraph(b, "", fmt.Sprintf("%s %s, %s: %s", p.verdict(check.Unknown), run.Scenario, strings.Join(unknown[reason], ", "), reason))
	}
}

// failure writes a check's result with its reason, the guarantee of the check and the evidence.
func (p layout) failure(b *strings.Builder, run *Run, result check.Result) {
	blankLine(b)
	p.paragraph(b, "", fmt.Sprintf("%s %s, %s: %s", p.verdict(result.Verdict), run.Scenario, result.Check, result.Reason))
	if definition, ok := check.Find(result.Check); ok {
		p.paragraph(b, "    ", "guarantee: "+definition.Guarantee)
	}
	for _, e := range result.Evidence {
		for i, line := range EvidenceLines(e) {
			indent := "      "
			if i == 0 {
				indent = "    "
			}
			p.paragraph(b, indent, Printable(line))
		}
	}
	if rest := more(result); rest != "" {
		p.paragraph(b, "    ", rest)
	}
}

// resultTable writes a table with the verdict of each check of one run. If all checks are unknown
// for the same reason, it writes no table. The method failures has already written the reason.
//
// resultTable omits the column scope if the terminal is narrow. It also omits this column if this
// version of gauntlet knows none of the checks.
func (p layout) resultTable(b *strings.Builder, run *Run) {
	if len(run.Results) == 0 || run.Undecided() {
		return
	}
	listed, inapplicable := run.listedResults()
	scopes := showsScopes(listed) && p.width >= scopesWidth
	reasonWidth := p.width - 36 - firstColumnWidth(run, listed) // the space that the other columns leave
	if scopes {
		reasonWidth -= len(contractScope) + 3
	}
	reasonWidth = min(max(reasonWidth, 12), 48)
	row := func(id, scope string, rest ...any) table.Row {
		if scopes {
			return append(table.Row{id, scope}, rest...)
		}
		return append(table.Row{id}, rest...)
	}
	t := newTable()
	t.AppendHeader(row("check", "scope", "verdict", "exercised", "reason"))
	for _, result := range listed {
		t.AppendRow(row(result.Check, scopeOf(result.Check), p.verdict(result.Verdict), result.Exercised, wrap(brief(result.Reason), reasonWidth)))
	}
	t.AppendFooter(row(run.Scenario, "", p.verdict(run.Verdict), "", wrap(brief(run.Reason), reasonWidth)))
	blankLine(b)
	b.WriteString(t.Render() + "\n")
	if len(inapplicable) > 0 {
		p.paragraph(b, "", countInapplicable(inapplicable)+": "+strings.Join(idsOf(inapplicable), ", "))
	}
}

// firstColumnWidth returns the length of the longest text in the first column of resultTable. The
// first column has check IDs, and the scenario's name in the footer. resultTable gives the
// remaining width of the terminal to the last column.
func firstColumnWidth(run *Run, results []check.Result) int {
	longest := len(run.Scenario)
	for _, id := range idsOf(results) {
		longest = max(longest, len(id))
	}
	return longest
}

// brief shortens a reason for a table, to at most 150 characters. If the check did not pass, the
// text above the table has the whole reason.
func brief(reason string) string {
	const runesMax = 150
	runes := []rune(reason)
	if len(runes) <= runesMax {
		return reason
	}
	return string(runes[:runesMax]) + "…"
}

// resultMatrices writes tables with the verdicts of several runs. A table has a row for each check
// and a column for each run.
//
// resultMatrices begins a new table if another column would make the table wider than p.width.
func (p layout) resultMatrices(b *strings.Builder, runs []Run) {
	ids := checkIDs(runs)
	first := len("verdict")
	for _, id := range ids {
		first = max(first, len(id))
	}
	for len(runs) > 0 {
		n, width := 0, first+4
		for n < len(runs) {
			width += runs[n].columnWidth() + 3
			if n > 0 && width > p.width {
				break
			}
			n++
		}
		blankLine(b)
		b.WriteString(p.matrix(ids, runs[:n]) + "\n")
		runs = runs[n:]
	}
}

// columnWidth returns the width of the run's column in a table of several runs, in characters. The
// column has the scenario's name and the verdicts.
func (r *Run) columnWidth() int {
	width := max(text.LongestLineLen(heading(r.Scenario)), len(r.Verdict))
	for _, result := range r.Results {
		width = max(width, len(result.Verdict))
	}
	return width
}

// matrix returns a table with a row for each of the given check IDs and a column for each run. The
// last rows have the runs' verdicts and durations.
func (p layout) matrix(ids []string, runs []Run) string {
	t := newTable()
	header, verdicts, times := table.Row{"check"}, table.Row{"verdict"}, table.Row{"time"}
	for _, run := range runs {
		header = append(header, heading(run.Scenario))
		verdicts = append(verdicts, p.verdict(run.Verdict))
		times = append(times, fmt.Sprintf("%.1f s", run.Duration.Seconds()))
	}
	t.AppendHeader(header)
	for _, id := range ids {
		row := table.Row{id}
		for _, run := range runs {
			cell := "-"
			if result, ok := run.result(id); ok {
				cell = p.verdict(result.Verdict)
			}
			row = append(row, cell)
		}
		t.AppendRow(row)
	}
	t.AppendFooter(verdicts)
	t.AppendFooter(times)
	return t.Render()
}

// locations writes for each run the directory, the command that reproduces the run, and what its
// faults did.
func (p layout) locations(b *strings.Builder, runs []Run) {
	for _, run := range runs {
		blankLine(b)
		fmt.Fprintf(b, "%s, %s, seed %d: %s in %s\n", run.Scenario, run.Subject, run.Seed, p.verdict(run.Verdict), run.durationText())
		fmt.Fprintf(b, "    directory  %s\n", run.Directory)
		fmt.Fprintf(b, "    reproduce  %s\n", run.Reproduce)
		if text := run.faultsText(); text != "" {
			fmt.Fprintf(b, "    faults     %s\n", Printable(text))
		}
		if unused := len(run.UnusedPermissions); unused > 0 {
			fmt.Fprintf(b, "    rbac       permissions that the run never used: %d; verdicts.json lists them\n", unused)
		}
	}
}

// newTable returns an empty table in the style that all tables of this package have.
func newTable() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	return t
}

// These are widths in characters. The function heading uses them to break the name of a scenario
// into lines.
const (
	headingWidth = 10 // maximum width of a line, if possible: a longer name is broken after a hyphen
	maxWordWidth = 14 // maximum width of a part without a hyphen; a longer part is broken
)

// heading breaks the name of a scenario into short lines, after hyphens. The column of the
// scenario then stays narrow.
func heading(name string) string {
	var lines []string
	line := ""
	for _, part := range strings.SplitAfter(name, "-") {
		if line != "" && len(line)+len(part) > headingWidth {
			lines = append(lines, text.WrapHard(line, maxWordWidth))
			line = ""
		}
		line += part
	}
	return strings.Join(append(lines, text.WrapHard(line, maxWordWidth)), "\n")
}

// paragraph writes text wrapped at p.width. The first line begins with the argument indent. Further
// lines begin with the same indent and four more spaces.
func (p layout) paragraph(b *strings.Builder, indent, words string) {
	lines := strings.Split(wrap(words, p.width-len(indent)-4), "\n")
	b.WriteString(indent + strings.Join(lines, "\n"+indent+"    ") + "\n")
}

// wrap breaks a text into lines. The argument width is the maximum number of characters in a line.
// wrap breaks lines between words, and inside a word only if the word is longer than a line.
func wrap(words string, width int) string {
	var lines []string
	for line := range strings.Lines(words) {
		lines = append(lines, wrapLine(strings.Fields(line), width)...)
	}
	return strings.Join(lines, "\n")
}

// wrapLine joins words to lines. The argument width is the maximum number of characters in a line.
// Escape sequences for colors do not count.
func wrapLine(words []string, width int) []string {
	var lines []string
	line := ""
	for _, word := range words {
		for _, piece := range strings.Split(text.WrapHard(word, width), "\n") {
			switch {
			case line == "":
				line = piece
			case text.StringWidthWithoutEscSequences(line)+1+text.StringWidthWithoutEscSequences(piece) <= width:
				line += " " + piece
			default:
				lines = append(lines, line)
				line = piece
			}
		}
	}
	return append(lines, line)
}
