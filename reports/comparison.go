package reports

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Comparison compares two subjects (controllers under test) that ran the same scenario, in one or
// more pairs of runs.
type Comparison struct {
	Scenario string // the name of the scenario
	// Subject and Base are the names of the two subjects (controllers under test), such as ours
	// and upstream. Differences say how Subject differs from Base.
	Subject, Base string
	Pairs         []Pair
	// Ratios has one element for each metric of cost, such as CPU time or the number of pod
	// creates. Each element has the metric's values of both subjects, one value for each pair.
	Ratios []compare.Ratio
}

// Pair has two runs with the same seed and different controllers under test, and the differences
// between the runs.
type Pair struct {
	Subject, Base Run
	Differences   []compare.Difference
	// Diff shows how the objects differ at the end of the two runs, in go-cmp's text format. Lines
	// that begin with "-" are from the base run.
	Diff string
	// CostNotComparable is true if the costs of the two runs are not compared. The reason is that a
	// run is incomplete, or that the runs completed different steps; see [compare.Pair.Comparable].
	CostNotComparable bool
}

// classificationLegend explains to a report's readers what each classification of a difference
// means.
const classificationLegend = "undeclared: no rule allows the difference; both wrong: both subjects violate the guarantee; " +
	"declared: our controllers differ deliberately; " +
	"not compared: the difference depends on steps that one run did not complete because of a known upstream issue; " +
	"accepted: the guarantees allow the behavior of either subject"

// comparisonSummary has what the reports about one comparison show: verdict, counts, differences
// and pairs.
type comparisonSummary struct {
	Scenario      string
	Subject, Base string
	Verdict       check.Verdict
	// Counts is a line of text with the subjects' names and the numbers of pairs and undeclared
	// differences; see [Comparison.countsText].
	Counts string
	// Differences has the differences that reports show one by one, worst first. Examples are
	// the undeclared differences, which no rule allows.
	Differences []distinctDifference
	// Others has the remaining differences, such as accepted ones, worst first; see isSetAside.
	// A group has the differences with the same classification and reason. The HTML page shows
	// a group collapsed, and text reports only count the group's differences.
	Others []reasonGroup
	Pairs  []pairSummary
	// CostSkipped says for how many pairs the costs are not compared, and why. It is empty if the
	// costs of all pairs are compared.
	CostSkipped string
	Costs       costTable
	// EndStateDiff shows how the objects of the two runs differ at the end; see Pair.Diff. Only the
	// page about one pair has it.
	EndStateDiff string
	// Links is true on the page about all pairs, which links to the page of each pair. It is false
	// on the page about one pair.
	Links bool
}

// pairSummary is a pair of runs with the file name of its HTML page, such as rollout-seed7.html.
type pairSummary struct {
	*Pair
	Page string
}

// distinctDifference is a difference between two runs, with the number of compared pairs of runs in
// which it occurs.
type distinctDifference struct {
	compare.Difference             // the difference with the values of the first pair in which it occurs
	pairs, of          int         // the number of pairs in which it occurs, and the number of all pairs
	first              pairSummary // the first pair in which the difference occurs
}

// In returns a text that says in how many pairs of runs the difference occurs, such as "2 of 5".
func (d distinctDifference) In() string { return fmt.Sprintf("%d of %d", d.pairs, d.of) }

// Page returns the file name of the HTML page about the first pair in which the difference occurs.
func (d distinctDifference) Page() string { return d.first.Page }

// reasonGroup is a group of differences with the same classification and reason, which reports
// show in one row.
type reasonGroup struct {
	Classification compare.Classification
	Reason         string
	All            []compare.Difference
}

// differenceTable is the input of the HTML template that shows differences between two runs as a
// table.
type differenceTable struct {
	Summary     comparisonSummary
	Differences []compare.Difference
}

// summarize returns the content of a report about all pairs of the comparison.
func (c *Comparison) summarize() comparisonSummary {
	s := c.summarizeDifferences(c.distinct())
	s.Verdict, s.Counts, s.Links = c.Verdict(), c.countsText(), true
	s.CostSkipped = c.costSkippedReason()
	return s
}

// summarizePair returns the content of the HTML page about the pair with index i.
//
// The content has only the differences of this pair, but the costs of all pairs. The costs of one
// pair are too few for the statistical test.
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

// summarizeDifferences returns a new summary with the given differences. The field Differences has
// those that reports show one by one. The field Others has the rest, such as accepted differences,
// in groups with the same reason; see isSetAside. The caller sets the verdict, the counts and all
// further fields.
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

// distinct returns the differences of all pairs, worst first. Equal differences of several pairs
// become one.
//
// Two differences are equal if they have the same Aspect, Object, What and Classification. Their
// values may differ.
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

// isSetAside reports whether reports show a difference only in a group of differences with the
// same reason.
//
// isSetAside returns true for accepted differences, declared differences between end states, and
// differences that are not compared. It returns false for an aborted workload, because this
// explains why other differences are not compared.
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

// Undeclared returns how many differences no rule allows, and how many guarantees both subjects
// violate. A difference that occurs in several pairs of runs counts once.
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

// Verdict returns the verdict fail if a difference is undeclared, which means that no rule allows
// it. It also returns fail if both subjects violate a guarantee. Otherwise it returns pass, or
// unknown if the comparison has no pair of runs.
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

// partial reports whether only the steps that both runs completed are compared. This happens if a
// known upstream issue aborted one run's workload at a step that the other run completed.
func (p *Pair) partial() bool {
	return slices.ContainsFunc(p.Differences, func(d compare.Difference) bool { return d.Classification == compare.NotCompared })
}

// costSkippedReason returns a sentence that says for how many pairs the costs are not compared,
// and why. It returns "" if the costs of all pairs are compared.
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
	return fmt.Sprintf("pairs whose costs are not compared: %d of %d; the two runs of such a pair did not complete "+
		"the same steps, or one of them ended early or has a gap in its history", n, len(c.Pairs))
}

// countsText returns one line with the names of the subjects and the number of pairs. The numbers
// of undeclared differences and of guarantees that both subjects violate follow. An example is
// "ours and upstream, pairs: 2, 1 undeclared".
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
		text += fmt.Sprintf(", pairs compared in part: %d", partial)
	}
	return fmt.Sprintf("%s and %s, pairs: %d, %s", c.Subject, c.Base, len(c.Pairs), text)
}

// aspect returns a text that says in which respect two runs differ, such as "verdict" or "end
// state: spec.replicas".
func aspect(d compare.Difference) string {
	if d.Aspect == compare.Verdicts {
		return string(d.Aspect)
	}
	return string(d.Aspect) + ": " + d.What
}
