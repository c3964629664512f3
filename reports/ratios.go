package reports

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// costTable is a table that compares the costs of two subjects (controllers under test) over
// several pairs of runs. All values are formatted as text.
type costTable struct {
	Subject, Base string
	Pairs         int
	Rows          []costRow
}

// costRow is the row of one metric in a [costTable]. All values are formatted as text.
//
// Subject and Base are the medians of the two subjects' values. A pair's ratio is the subject's
// value divided by the base's value. Ratio and Spread are the median and the range of the pairs'
// ratios. Finding is the result of the statistical test.
type costRow struct {
	Metric, Subject, Base, Ratio, Spread, Finding string
	// Same is true if the statistical test shows no difference between the two subjects.
	Same bool
}

// costsOf formats a comparison of two subjects' costs as a table with one row for each metric.
func costsOf(subject, base string, ratios []compare.Ratio) costTable {
	t := costTable{Subject: subject, Base: base}
	for _, r := range ratios {
		of, on := r.Medians()
		low, high := r.Spread()
		finding, p := r.Finding()
		t.Pairs = len(r.Base)
		t.Rows = append(t.Rows, costRow{
			Metric: r.Metric, Subject: amount(of, r.Unit), Base: amount(on, r.Unit), Ratio: factor(r.Median()),
			Spread: factor(low) + "–" + factor(high), Finding: fmt.Sprintf("%s (p=%.3f)", findingText(r, finding), p),
			Same: finding == compare.Same,
		})
	}
	return t
}

// How returns a sentence that explains how the numbers in the table were computed.
func (t costTable) How() string {
	pairs := "1 pair"
	if t.Pairs != 1 {
		pairs = fmt.Sprintf("%d pairs", t.Pairs)
	}
	return fmt.Sprintf("medians of %s; the finding is the result of a Mann-Whitney U test at the 5 %% level, "+
		"which needs at least %d pairs", pairs, compare.PairsMin)
}

// table converts the costs to a table of package go-pretty, which renders text or Markdown.
func (t costTable) table() table.Writer {
	w := newTable()
	w.AppendHeader(table.Row{"cost", t.Subject, t.Base, "ratio", "range", "finding"})
	w.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight},
	})
	for _, r := range t.Rows {
		w.AppendRow(table.Row{r.Metric, r.Subject, r.Base, r.Ratio, r.Spread, r.Finding})
	}
	return w
}

// Ratios writes a table that compares the costs of two subjects over several pairs of runs. A row
// has the medians of the two subjects, and the median and range of the pairs' ratios. It also has
// the finding of a statistical test.
func Ratios(w io.Writer, subject, base string, ratios []compare.Ratio) error {
	t := costsOf(subject, base, ratios)
	if _, err := fmt.Fprintf(w, "%s\n%s\n", t.table().Render(), t.How()); err != nil {
		return fmt.Errorf("writing the table of costs: %w", err)
	}
	return nil
}

// findingText returns the result of the statistical test in a word that fits the metric. For
// example, the result of a shorter duration is "faster", not "less".
//
// findingText returns "too few pairs" if the subjects' values differ, but there are too few pairs
// for the test.
func findingText(r compare.Ratio, finding compare.Finding) string {
	switch {
	case finding == compare.Same && len(r.Base) < compare.PairsMin && !slices.Equal(r.Subject, r.Base):
		return "too few pairs"
	case r.Unit != "s" || r.Metric == compare.CPUTime || r.Metric == compare.EndpointsWrong:
		return string(finding)
	case finding == compare.Less:
		return "faster"
	case finding == compare.More:
		return "slower"
	default:
		return string(finding)
	}
}

// amount formats a value with its unit, such as "1.50 s". A value without a unit is a count, such
// as a number of requests, and has no decimals.
func amount(value float64, unit string) string {
	if unit == "" {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f %s", value, unit)
}

// factor formats a ratio with two decimals: the value of the controllers under test, divided by the
// base's value. It returns "∞" if only the base's value is 0.
func factor(ratio float64) string {
	if math.IsInf(ratio, 1) {
		return "∞"
	}
	return fmt.Sprintf("%.2f", ratio)
}
