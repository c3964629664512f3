package reports

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Comparison is the comparison of two subjects in one scenario, with one or more pairs of runs.
type Comparison struct {
	Scenario string // the name of the scenario
	// Subject and Base are the names of the two subjects. Base is the one to compare with.
	Subject, Base string
	Pairs         []Pair
	// Ratios compares the costs of the pairs.
	Ratios []compare.Ratio
}

// Pair has two runs with the same seed, one on each subject, and their differences.
type Pair struct {
	Subject, Base Run
	Differences   []compare.Difference
	// Diff has the differences of the two end states as text in the format of go-cmp. Lines
	// with "-" are from the base.
	Diff string
	// CostNotComparable is true if the costs of the two runs cannot be compared; see
	// [compare.Pair.Comparable].
	CostNotComparable bool
}

// classificationLegend explains the classifications to readers of a report.
const classificationLegend = "undeclared: no rule allows the difference; both wrong: both subjects violate the guarantee; " +
	"declared: ours differs deliberately; not compared: one run was aborted earlier because of a known upstream issue; " +
	"accepted: the guarantees allow both"

// comparisonSummary has what all formats show of a comparison.
type comparisonSummary struct {
	Scenario      string
	Subject, Base string
	Verdict       check.Verdict
	// Counts is a text with the numbers of pairs and of differences.
	Counts string
	// Differences has the differences that tell readers something about a subject, worst
	// first.
	Differences []distinctDifference
	// Others has the differences for which isSetAside returns true, grouped by classification
	// and reason, worst first.
	Others []reasonGroup
	Pairs  []pairSummary
	// CostSkipped says for how many pairs the costs are not compared. It is empty if the
	// costs of all pairs are compared.
	CostSkipped string
	Costs       costTable
	// EndStateDiff is [Pair.Diff] on the page of one pair. It is empty on other pages.
	EndStateDiff string
	// Links is true if the summary links to a page for each pair.
	Links bool
}

// pairSummary is a pair with the file name of its page.
type pairSummary struct {
	*Pair
	Page string
}

// distinctDifference is a difference that one or more pairs have.
type distinctDifference struct {
	compare.Difference             // the difference in the first pair that has it
	pairs, of          int         // the number of pairs that have it, and the number of all pairs
	first              pairSummary // the first pair that has it
}

// In returns how many pairs have the difference as text, such as "2 of 5".
func (d distinctDifference) In() string { return fmt.Sprintf("%d of %d", d.pairs, d.of) }

// Page returns the file name of the page of the first pair with the difference.
func (d distinctDifference) Page() string { return d.first.Page }

// reasonGroup has the differences with the same classification and reason.
type reasonGroup struct {
	Classification compare.Classification
	Reason         string
	All            []compare.Difference
}

// differenceTable is the input of the template for a table of differences.
type differenceTable struct {
	Summary     comparisonSummary
	Differences []compare.Difference
}

// summarize returns the summary of all pairs.
func (c *Comparison) summarize() comparisonSummary {
	s := c.summarizeDifferences(c.distinct())
	s.Verdict, s.Counts, s.Links = c.Verdict(), c.countsText(), true
	s.CostSkipped = c.costSkippedReason()
	return s
}

// summarizePair returns the summary of the pair with index i. It has the differences of that
// pair only, and the costs of all pairs.
func (c *Comparison) summarizePair(i int) comparisonSummary {
	single := Comparison{Scenario: c.Scenario, Subject: c.Subject, Base: c.Base, Pairs: c.Pairs[i : i+1], Ratios: c.Ratios}
	pair := pairSummary{Pair: &c.Pairs[i]}
	var differences []distinctDifference
	for _, d := range pair.Differences {
		differences = append(differences, distinctDifference{Difference: d, pairs: 1, of: 1, first: pair})
	}
	s := single.summarizeDifferences(differences)
	s.Verdict, s.Counts = single.Verdict(), single.countsText()
	s.CostSkipped, s.EndStateDiff = c.costSkippedReason(), pair.Diff
	return s
}

// summarizeDifferences returns a summary with the differences, of which isSetAside moves some
// to Others. It does not set the verdict and the counts.
func (c *Comparison) summarizeDifferences(differences []distinctDifference) comparisonSummary {
	s := comparisonSummary{Scenario: c.Scenario, Subject: c.Subject, Base: c.Base, Costs: costsOf(c.Subject, c.Base, c.Ratios)}
	for i := range c.Pairs {
		s.Pairs = append(s.Pairs, pairSummary{&c.Pairs[i], c.PageName(i)})
	}
	for _, d := range differences {
		if !isSetAside(d.Difference) {
			s.Differences = append(s.Differences, d)
			continue
		}
		i := slices.IndexFunc(s.Others, func(g reasonGroup) bool { return g.Classification == d.Classification && g.Reason == d.Reason })
		if i < 0 {
			i = len(s.Others)
			s.Others = append(s.Others, reasonGroup{Classification: d.Classification, Reason: d.Reason})
		}
		s.Others[i].All = append(s.Others[i].All, d.Difference)
	}
	return s
}

// distinct returns the differences of all pairs, each once, worst first. Two differences are
// equal if aspect, object, part and classification are equal.
func (c *Comparison) distinct() []distinctDifference {
	var all []distinctDifference
	for i := range c.Pairs {
		for _, d := range c.Pairs[i].Differences {
			same := func(f distinctDifference) bool {
				return f.Aspect == d.Aspect && f.Object == d.Object && f.What == d.What && f.Classification == d.Classification
			}
			index := slices.IndexFunc(all, same)
			if index < 0 {
				index = len(all)
				all = append(all, distinctDifference{Difference: d, of: len(c.Pairs), first: pairSummary{&c.Pairs[i], c.PageName(i)}})
			}
			all[index].pairs++
		}
	}
	slices.SortStableFunc(all, func(a, b distinctDifference) int {
		return slices.Index(compare.WorstFirst, a.Classification) - slices.Index(compare.WorstFirst, b.Classification)
	})
	return all
}

// isSetAside reports whether a difference tells readers nothing about a subject. This holds for
// accepted and for most not compared differences. It also holds for end states that follow from
// a declared difference. It never holds for an aborted workload, or for a check that only one
// subject violates.
func isSetAside(d compare.Difference) bool {
	switch d.Classification {
	case compare.Accepted:
		return true
	case compare.NotCompared:
		return d.Aspect != compare.Workloads
	case compare.Declared:
		return d.Aspect == compare.EndStates
	default:
		return false
	}
}

// Undeclared returns the number of undeclared differences, and the number of guarantees that
// both subjects violate.
func (c *Comparison) Undeclared() (undeclared, bothWrong int) {
	for _, d := range c.distinct() {
		switch d.Classification {
		case compare.Undeclared:
			undeclared++
		case compare.BothWrong:
			bothWrong++
		}
	}
	return undeclared, bothWrong
}

// Verdict returns fail if a difference is undeclared or if both subjects violate a guarantee.
// Otherwise it returns pass, or unknown if the comparison has no pair.
func (c *Comparison) Verdict() check.Verdict {
	undeclared, bothWrong := c.Undeclared()
	switch {
	case undeclared+bothWrong > 0:
		return check.Fail
	case len(c.Pairs) == 0:
		return check.Unknown
	default:
		return check.Pass
	}
}

// partial reports whether only the first steps of the two runs are compared. The reason is that
// a known upstream issue aborted one workload before the other.
func (p *Pair) partial() bool {
	return slices.ContainsFunc(p.Differences, func(d compare.Difference) bool { return d.Classification == compare.NotCompared })
}

// costSkippedReason returns text that says for how many pairs the costs are not compared. It
// returns "" if the costs of all pairs are compared.
func (c *Comparison) costSkippedReason() string {
	n := 0
	for i := range c.Pairs {
		if c.Pairs[i].CostNotComparable {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("the cost of %d of %d pairs is not compared, because their runs did not complete the same steps or have gaps in their histories", n, len(c.Pairs))
}

// countsText returns text with the numbers of pairs, of undeclared differences, and of
// guarantees that both subjects violate.
func (c *Comparison) countsText() string {
	undeclared, bothWrong := c.Undeclared()
	text := "no undeclared difference"
	switch {
	case undeclared > 0:
		text = fmt.Sprintf("%d undeclared", undeclared)
	case len(c.Pairs) == 0:
		text = "nothing was compared"
	}
	if bothWrong > 0 {
		text += fmt.Sprintf(", %d both wrong", bothWrong)
	}
	partial := 0
	for i := range c.Pairs {
		if c.Pairs[i].partial() {
			partial++
		}
	}
	if partial > 0 {
		text += fmt.Sprintf(", %d compared in part", partial)
	}
	return fmt.Sprintf("%s and %s, pairs: %d, %s", c.Subject, c.Base, len(c.Pairs), text)
}

// aspect returns what differs as text, such as "verdict" or "end state: spec.replicas".
func aspect(d compare.Difference) string {
	if d.Aspect == compare.Verdicts {
		return string(d.Aspect)
	}
	return string(d.Aspect) + ": " + d.What
}
