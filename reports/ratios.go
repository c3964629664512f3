package reports

import (
	"fmt"
	"io"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Ratios writes a table of what pairs of runs cost two subjects: medians, the
// median of the pairs' ratios with its spread, and whether the pairs show a
// difference.
func Ratios(w io.Writer, subject, base string, ratios []compare.Ratio) error {
	t := newTable()
	t.AppendHeader(table.Row{"cost", subject, base, "ratio", "spread", "finding"})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight},
	})
	for _, r := range ratios {
		of, on := r.Medians()
		low, high := r.Spread()
		finding, p := r.Finding()
		t.AppendRow(table.Row{
			r.Metric, amount(of, r.Unit), amount(on, r.Unit), factor(r.Median()),
			factor(low) + "–" + factor(high), fmt.Sprintf("%s (p=%.3f)", plain(r, finding), p),
		})
	}
	pairs := 0
	if len(ratios) > 0 {
		pairs = len(ratios[0].Base)
	}
	_, err := fmt.Fprintf(w, "%s\nmedians of %d pairs; the finding is by the Mann-Whitney U test at 5 %%\n", t.Render(), pairs)
	if err != nil {
		return fmt.Errorf("printing the ratios: %w", err)
	}
	return nil
}

// plain says a finding in the words of what was measured.
func plain(r compare.Ratio, finding compare.Finding) string {
	switch {
	case r.Unit != "s" || r.Metric == compare.CPUTime:
		return string(finding)
	case finding == compare.Less:
		return "faster"
	case finding == compare.More:
		return "slower"
	default:
		return string(finding)
	}
}

func amount(value float64, unit string) string {
	if unit == "" {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f %s", value, unit)
}

// factor is a ratio; one of something to nothing has no number.
func factor(ratio float64) string {
	if math.IsInf(ratio, 1) {
		return "∞"
	}
	return fmt.Sprintf("%.2f", ratio)
}
