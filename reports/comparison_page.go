package reports

import (
	"fmt"
	"io"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// comparedPair is a pair as its page shows it: what differs, and what all pairs of its
// scenario cost.
type comparedPair struct {
	*Pair
	Matter            []compare.Difference
	Aside             []reasonGroup
	Costs             costTable
	CostSkippedReason string
}

// PairHTML writes a pair of a comparison as one page: what differs, what all pairs
// cost, the verdicts of both, and both timelines, so that the steps of the workload
// fall together.
func PairHTML(w io.Writer, c *Comparison, i int, dir string) error {
	pair := &c.Pairs[i]
	data := &pageData{
		Compared: &comparedPair{Pair: pair, Costs: costsOf(c.Subject, c.Base, c.Ratios), CostSkippedReason: c.costSkippedReason()},
		Reason:   fmt.Sprintf("%s: %s and %s, seed %d", pair.Subject.Scenario, pair.Subject.Subject, pair.Base.Subject, pair.Subject.Seed),
	}
	data.Compared.Matter, data.Compared.Aside = siftByReason(pair.Differences, func(d compare.Difference) compare.Difference { return d })
	data.Verdict, _ = summarize([]Run{pair.Subject, pair.Base})
	if slices.ContainsFunc(pair.Differences, func(d compare.Difference) bool { return d.Classification == compare.Undeclared }) {
		data.Verdict = check.Fail
	}
	details := []*Detail{ReadDetail(&pair.Subject), ReadDetail(&pair.Base)}
	data.Detail = &Detail{Scenario: details[0].Scenario, Missing: slices.Concat(details[0].Missing, details[1].Missing)}
	drawn := details[0].Timeline != nil && details[1].Timeline != nil
	for i, run := range []Run{pair.Subject, pair.Base} {
		data.Runs = append(data.Runs, pageRun{
			Run: run, Sorted: run.sortedResults(), Anchor: []string{"v", "t1"}[i], Marks: []string{"s", "t1-s"}[i], Page: pageOf(&run, dir), Full: true, Drawing: drawn,
		})
	}
	if drawn {
		a, b := details[0].Timeline, details[1].Timeline
		ofA, ofB := timeline.Align(a, b)
		data.Drawings = &drawnTimelines{Runs: []*drawnTimeline{draw(a), draw(b)}, Knots: [][]int64{microseconds(ofA), microseconds(ofB)}}
	}
	return data.write(w)
}

// comparedScenario is a comparison as the page of several shows it.
type comparedScenario struct {
	Verdict           check.Verdict
	Scenario, Sums    string
	Subject, Base     string
	Differences       []pageDifference
	Aside             []reasonGroup
	Costs             costTable
	CostSkippedReason string
	Pairs             []pagePair
}

type pageDifference struct {
	compare.Difference
	In    string // how many of the pairs show it
	First string // the page of the first of them
}

type pagePair struct {
	Seed   uint64
	Page   string
	Of, On pageSide // the subject's run and the base's
}

type pageSide struct {
	Verdict check.Verdict
	Took    string
}

// PageName is the name of the file that holds the page of a pair.
func (c *Comparison) PageName(i int) string {
	return fmt.Sprintf("%s-seed%d.html", c.Scenario, c.Pairs[i].Subject.Seed)
}

// ComparedHTML writes comparisons as one page, the worst first, that leads to the
// pages of the pairs, which are to be beside it under their [Comparison.PageName].
func ComparedHTML(w io.Writer, comparisons []Comparison) error {
	data := &pageData{Verdict: check.Pass}
	wrong := 0
	for i := range comparisons {
		c := &comparisons[i]
		undeclared, bothWrong := c.Undeclared()
		wrong += undeclared + bothWrong
		data.Verdict = check.Worst(data.Verdict, c.Verdict())
		data.Comparisons = append(data.Comparisons, c.page())
	}
	data.Reason = fmt.Sprintf("scenarios compared: %d, with %d differences that nobody has declared or in which both are wrong", len(comparisons), wrong)
	slices.SortStableFunc(data.Comparisons, func(a, b comparedScenario) int { return byVerdict(a.Verdict, b.Verdict) })
	return data.write(w)
}

func (c *Comparison) page() comparedScenario {
	p := comparedScenario{
		Verdict: c.Verdict(), Scenario: c.Scenario, Sums: c.countsText(), Subject: c.Subject, Base: c.Base,
		Costs: costsOf(c.Subject, c.Base, c.Ratios), CostSkippedReason: c.costSkippedReason(),
	}
	matter, rest := c.siftDifferences()
	p.Aside = rest
	for _, f := range matter {
		p.Differences = append(p.Differences, pageDifference{
			Difference: f.Difference, In: fmt.Sprintf("%d of %d", f.pairs, len(c.Pairs)),
			First: c.PageName(f.first),
		})
	}
	for i := range c.Pairs {
		pair := &c.Pairs[i]
		p.Pairs = append(p.Pairs, pagePair{
			Seed: pair.Subject.Seed, Page: c.PageName(i),
			Of: pageSide{pair.Subject.Verdict, seconds(pair.Subject.Duration)}, On: pageSide{pair.Base.Verdict, seconds(pair.Base.Duration)},
		})
	}
	return p
}
