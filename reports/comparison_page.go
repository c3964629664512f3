package reports

import (
	"fmt"
	"io"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// PairHTML writes the HTML page about one pair of runs of a comparison: the pair with index i.
//
// The page has the differences of the pair, the verdicts of both runs, and both timelines. The
// timelines are aligned at the steps of the workload. The page also has the costs of all pairs.
// Links are relative to the directory dir.
func PairHTML(w io.Writer, c *Comparison, i int, dir string) error {
	pair := &c.Pairs[i]
	data := &pageData{
		Pair:        true,
		Comparisons: []comparisonSummary{c.summarizePair(i)},
		Reason:      fmt.Sprintf("%s: %s and %s, seed %d", pair.Subject.Scenario, pair.Subject.Subject, pair.Base.Subject, pair.Subject.Seed),
	}
	data.Verdict, _ = summarize([]Run{pair.Subject, pair.Base})
	if slices.ContainsFunc(pair.Differences, func(d compare.Difference) bool { return d.Classification == compare.Undeclared }) {
		data.Verdict = check.Fail
	}
	details := []*Detail{ReadDetail(&pair.Subject), ReadDetail(&pair.Base)}
	data.Detail = &Detail{Scenario: details[0].Scenario, Missing: slices.Concat(details[0].Missing, details[1].Missing)}
	drawn := details[0].Timeline != nil && details[1].Timeline != nil
	for i, run := range []Run{pair.Subject, pair.Base} {
		data.Runs = append(data.Runs, pageRun{
			Run: run, Sorted: run.sortedResults(), CheckAnchor: []string{"check-", "t1-check-"}[i], Anchor: []string{"v", "t1"}[i],
			Marks: []string{"s", "t1-s"}[i], Full: true, HasTimeline: drawn, Page: pageOf(&run, dir),
		})
	}
	if drawn {
		a, b := details[0].Timeline, details[1].Timeline
		ofA, ofB := timeline.Align(a, b)
		data.Timelines = &drawnTimelines{Runs: []*drawnTimeline{draw(a), draw(b)}, Knots: [][]int64{microseconds(ofA), microseconds(ofB)}}
	}
	return data.write(w)
}

// PageName returns the file name of the HTML page about the pair with index i, such as
// "rollout-seed7.html".
func (c *Comparison) PageName(i int) string {
	return fmt.Sprintf("%s-seed%d.html", c.Scenario, c.Pairs[i].Subject.Seed)
}

// ComparedHTML writes all comparisons as one HTML page, worst verdict first.
//
// The page links to the page of each pair. These pages must be in the same directory, under the
// names that [Comparison.PageName] returns.
func ComparedHTML(w io.Writer, comparisons []Comparison) error {
	data := &pageData{Verdict: check.Pass}
	wrong := 0
	for i := range comparisons {
		c := &comparisons[i]
		undeclared, bothWrong := c.Undeclared()
		wrong += undeclared + bothWrong
		data.Verdict = check.Worst(data.Verdict, c.Verdict())
		data.Comparisons = append(data.Comparisons, c.summarize())
	}
	data.Reason = fmt.Sprintf("scenarios compared: %d; problems: %d (undeclared differences, and guarantees that both subjects violate)", len(comparisons), wrong)
	slices.SortStableFunc(data.Comparisons, func(a, b comparisonSummary) int { return byVerdict(a.Verdict, b.Verdict) })
	return data.write(w)
}
