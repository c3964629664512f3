package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Compared writes comparisons as text for a terminal. For each scenario, it writes each difference
// that needs attention, such as an undeclared one; see isSetAside. It only counts the remaining
// differences, by reason. It also writes the costs.
func Compared(w io.Writer, comparisons []Comparison) error {
	return compared(w, comparisons, terminalStyle)
}

// ComparedMarkdown writes the same content as [Compared], but as Markdown.
func ComparedMarkdown(w io.Writer, comparisons []Comparison) error {
	return compared(w, comparisons, markdownStyle)
}

// style has the functions that format the tables, texts and paths of a report. A command line counts
// as a path.
type style struct {
	table      func(table.Writer) string
	text, path func(string) string
}

var (
	terminalStyle = style{table.Writer.Render, Printable, Printable}
	markdownStyle = style{table.Writer.RenderMarkdown, escape, code}
)

// compared writes comparisons in the given style. If there are differences, it ends with an
// explanation of the classifications.
func compared(w io.Writer, comparisons []Comparison, s style) error {
	var b strings.Builder
	explain := false
	for i := range comparisons {
		summary := comparisons[i].summarize()
		summary.write(&b, s)
		comparisons[i].writeCosts(&b, s)
		explain = explain || len(summary.Differences)+len(summary.Others) > 0
	}
	if explain {
		b.WriteString(classificationLegend + "\n\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparisons as text: %w", err)
	}
	return nil
}

// write writes the counts and the differences of a comparison in the given style, for a terminal
// or as Markdown.
func (c *comparisonSummary) write(b *strings.Builder, s style) {
	fmt.Fprintf(b, "## %s: %s\n\n", c.Scenario, c.Counts)
	for _, d := range c.Differences {
		fmt.Fprintf(b, "- %s: %s, %s\n", d.Classification, s.text(d.Object), s.text(aspect(d.Difference)))
		fmt.Fprintf(b, "  - %s: %s; %s: %s\n", s.text(c.Subject), s.text(cmp.Or(d.Subject, "none")), s.text(c.Base), s.text(cmp.Or(d.Base, "none")))
		if d.Reason != "" {
			fmt.Fprintf(b, "  - %s\n", s.text(d.Reason))
		}
		fmt.Fprintf(b, "  - in %s pairs, first with seed %d: %s and %s\n", d.In(), d.first.Subject.Seed,
			s.path(d.first.Subject.Directory), s.path(d.first.Base.Directory))
	}
	for _, group := range c.Others {
		fmt.Fprintf(b, "- %s, %d: %s\n", group.Classification, len(group.All), s.text(group.Reason))
	}
	if len(c.Differences)+len(c.Others) > 0 {
		b.WriteString("\n")
	}
}

// writeCosts writes a table of the costs that [Comparison.shownCosts] returns. A line below the
// table says how many metrics the table omits, because the statistical test shows no difference.
func (c *Comparison) writeCosts(b *strings.Builder, s style) {
	if reason := c.costSkippedReason(); reason != "" {
		b.WriteString(reason + "\n\n")
	}
	shown := c.shownCosts()
	if len(shown) == 0 {
		return
	}
	costs := costsOf(c.Subject, c.Base, shown)
	fmt.Fprintf(b, "%s\n\n%s", s.table(costs.table()), costs.How())
	if rest := len(c.Ratios) - len(shown); rest > 0 {
		fmt.Fprintf(b, "; metrics not in the table, because the test shows no difference: %d", rest)
	}
	b.WriteString("\n\n")
}

// shownCosts returns the metrics that the table of costs shows. These are all metrics of the whole
// run, such as CPU time, and each other metric for which the statistical test shows a difference.
func (c *Comparison) shownCosts() []compare.Ratio {
	always := []string{
		compare.TimeToConverge, compare.EndpointsWrong, compare.CPUTime, compare.PeakMemory, compare.BytesSent, compare.BytesReceived,
	}
	return slices.DeleteFunc(slices.Clone(c.Ratios), func(r compare.Ratio) bool {
		finding, _ := r.Finding()
		return finding == compare.Same && !slices.Contains(always, r.Metric)
	})
}
