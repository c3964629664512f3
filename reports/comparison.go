package reports

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Comparison is the comparison of two subjects in one scenario.
type Comparison struct {
	Scenario      string
	Subject, Base string
	Pairs         []Pair
	// Ratios compares the cost of the pairs.
	Ratios []compare.Ratio
}

// Pair has one run on each subject, both with the same seed.
type Pair struct {
	Subject, Base Run
	Differences   []compare.Difference
	// Diff shows the difference of the end states in the format of go-cmp; "-" marks the
	// base.
	Diff string
	// CostNotComparable reports that the costs of the two runs cannot be compared.
	CostNotComparable bool
}

// classificationLegend explains each classification to readers of the reports.
const classificationLegend = "undeclared: no rule allows the difference; both wrong: both subjects violate the guarantee; " +
	"declared: ours differs deliberately; not compared: one run was aborted earlier because of a known upstream issue; " +
	"accepted: the guarantees allow both"

// comparisonSummary is a comparison as all renderers show it.
type comparisonSummary struct {
	Scenario      string
	Subject, Base string
	Verdict       check.Verdict
	// Counts says how many pairs and differences there are.
	Counts string
	// Differences has the differences that show something about a subject. Others has the
	// differences that isSetAside selects, grouped by classification and reason. Both are
	// sorted, worst first.
	Differences []distinctDifference
	Others      []reasonGroup
	Pairs       []pairSummary
	// CostSkipped says for how many pairs the costs are not compared. It is empty if the
	// costs of all pairs are compared.
	CostSkipped string
	Costs       costTable
	// EndStateDiff is the Diff of the pair on the page of one pair, and empty elsewhere.
	EndStateDiff string
	// Links reports whether the pairs have pages of their own.
	Links bool
}

// pairSummary is a pair and the file name of its page.
type pairSummary struct {
	*Pair
	Page string
}

// distinctDifference is a difference that occurs in one or more pairs.
type distinctDifference struct {
	compare.Difference // as in the first pair
	pairs, of          int
	first              pairSummary // the first pair with the difference
}

// In returns the number of pairs that have the difference as text, such as "2 of 5".
func (d distinctDifference) In() string { return fmt.Sprintf("%d of %d", d.pairs, d.of) }

// Page is the page of the first pair with the difference.
func (d distinctDifference) Page() string { return d.first.Page }

// reasonGroup holds the differences with one classification and reason.
type reasonGroup struct {
	Classification compare.Classification
	Reason         string
	All            []compare.Difference
}

// differenceTable is a table of differences on the page.
type differenceTable struct {
	Summary     comparisonSummary
	Differences []compare.Difference
}

// summarize returns the comparison of all pairs.
func (c *Comparison) summarize() comparisonSummary {
	s := c.summarizeDifferences(c.distinct())
	s.Verdict, s.Counts, s.Links = c.Verdict(), c.countsText(), true
	s.CostSkipped = c.costSkippedReason()
	return s
}

// summarizePair returns the comparison of one pair, with the costs of all pairs.
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

// summarizeDifferences separates the differences that say something about a subject from
// the others. It groups the others by reason.
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

// distinct returns the differences of all pairs without repetitions, worst first.
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

// isSetAside reports whether a difference shows nothing about either subject. This holds
// for accepted and not compared differences, and for end states that follow from a declared
// difference. An aborted workload and a check that only one subject violates are never set
// aside.
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

// Undeclared counts the undeclared differences and the guarantees that both subjects violate.
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

// Verdict returns fail if a difference is undeclared or both subjects violate a guarantee.
// Otherwise it returns unknown if there is no pair, and pass if there is one.
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

// partial reports whether only the first steps of the pair are compared. The reason is that
// a known upstream issue aborted the workload of one run before that of the other.
func (p *Pair) partial() bool {
	return slices.ContainsFunc(p.Differences, func(d compare.Difference) bool { return d.Classification == compare.NotCompared })
}

// costSkippedReason says for how many pairs the cost is not compared. It returns "" if the
// cost of every pair is compared.
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

// countsText returns the number of pairs and the numbers of differences that matter.
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

// aspect returns the part of an object, check or step that differs, as reports show it.
func aspect(d compare.Difference) string {
	if d.Aspect == compare.Verdicts {
		return string(d.Aspect)
	}
	return string(d.Aspect) + ": " + d.What
}
