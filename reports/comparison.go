package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Comparison is a scenario on two subjects.
type Comparison struct {
	Scenario      string
	Subject, Base string
	Pairs         []Pair
	// Ratios compares what the pairs cost.
	Ratios []compare.Ratio
}

// Pair is a run on each subject, with the same seed.
type Pair struct {
	Subject, Base Run
	Differences   []compare.Difference
	// Diff is how their end states differ, in the form of go-cmp: − is the base.
	Diff string
	// CostNotComparable: what they cost cannot be compared.
	CostNotComparable bool
}

// Undeclared returns how many differences of a comparison nobody has declared, and
// how many guarantees both subjects break.
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

// classificationLegend says what the standings of differences mean.
const classificationLegend = "undeclared: nobody has said that it may be; both wrong: both break a guarantee; " +
	"declared: ours is meant to differ, as README says; not compared: one run was broken off before that, by a weakness that " +
	"upstream is known for; accepted: either way is right"

// distinctDifference is one difference, in any number of pairs.
type distinctDifference struct {
	compare.Difference // of the first pair
	pairs              int
	first              int // the first of them
}

// distinct returns the differences in all pairs, worst first.
func (c *Comparison) distinct() []distinctDifference {
	var all []distinctDifference
	for i := range c.Pairs {
		for _, d := range c.Pairs[i].Differences {
			same := func(f distinctDifference) bool {
				return f.Aspect == d.Aspect && f.Object == d.Object && f.What == d.What && f.Classification == d.Classification
			}
			place := slices.IndexFunc(all, same)
			if place < 0 {
				place = len(all)
				all = append(all, distinctDifference{Difference: d, first: i})
			}
			all[place].pairs++
		}
	}
	slices.SortStableFunc(all, func(a, b distinctDifference) int {
		return slices.Index(compare.WorstFirst, a.Classification) - slices.Index(compare.WorstFirst, b.Classification)
	})
	return all
}

// Compared writes for a terminal what comparisons came to: for each scenario the
// differences that matter, the accepted ones by their reasons, and what it cost.
func Compared(w io.Writer, comparisons []Comparison) error {
	return compared(w, comparisons, style{table.Writer.Render, asIs, asIs})
}

// ComparedMarkdown writes the same as Markdown.
func ComparedMarkdown(w io.Writer, comparisons []Comparison) error {
	return compared(w, comparisons, style{table.Writer.RenderMarkdown, escape, code})
}

// style is how a table, a text and a path are written.
type style struct {
	table      func(table.Writer) string
	text, path func(string) string
}

func asIs(text string) string { return text }

func compared(w io.Writer, comparisons []Comparison, s style) error {
	var b strings.Builder
	explain := false
	for _, c := range comparisons {
		c.write(&b, s)
		matter, rest := c.siftDifferences()
		explain = explain || len(matter)+len(rest) > 0
	}
	if explain {
		b.WriteString(classificationLegend + "\n\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing a comparison: %w", err)
	}
	return nil
}

// Verdict is fail where a difference is undeclared or both are wrong, unknown where
// nothing was compared, otherwise pass.
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

// partial reports whether the pair is compared in part only: one run was broken off
// before the other, by a weakness that upstream is known for.
func (p *Pair) partial() bool {
	return slices.ContainsFunc(p.Differences, func(d compare.Difference) bool { return d.Classification == compare.NotCompared })
}

// costSkippedReason says of how many pairs the cost is not compared, if of any.
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
	return fmt.Sprintf("the cost is not compared of %d of %d pairs: their runs did not do the same steps to the end, or were not seen whole", n, len(c.Pairs))
}

// countsText says in a phrase what it came to.
func (c *Comparison) countsText() string {
	undeclared, bothWrong := c.Undeclared()
	verdict := "no undeclared difference"
	switch {
	case undeclared > 0:
		verdict = fmt.Sprintf("%d undeclared", undeclared)
	case len(c.Pairs) == 0:
		verdict = "nothing was compared"
	}
	if bothWrong > 0 {
		verdict += fmt.Sprintf(", %d both wrong", bothWrong)
	}
	partly := 0
	for i := range c.Pairs {
		if c.Pairs[i].partial() {
			partly++
		}
	}
	if partly > 0 {
		verdict += fmt.Sprintf(", %d compared in part", partly)
	}
	return fmt.Sprintf("%s and %s, pairs: %d, %s", c.Subject, c.Base, len(c.Pairs), verdict)
}

// reasonGroup is differences that say nothing of either subject, or nothing more, for one
// reason.
type reasonGroup struct {
	Classification compare.Classification
	Reason         string
	All            []compare.Difference
}

// isSetAside reports whether a difference says nothing of either subject, or nothing more:
// it is accepted, or not compared, or how things ended that were meant to end otherwise.
// With which step a run was broken off matters, and which check one alone breaks.
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

// siftByReason parts the differences that matter from the others, which it gathers by reason.
// What it sifts has a difference each.
func siftByReason[T any](all []T, of func(T) compare.Difference) (matter []T, rest []reasonGroup) {
	for _, one := range all {
		d := of(one)
		if !isSetAside(d) {
			matter = append(matter, one)
			continue
		}
		i := slices.IndexFunc(rest, func(a reasonGroup) bool { return a.Classification == d.Classification && a.Reason == d.Reason })
		if i < 0 {
			i = len(rest)
			rest = append(rest, reasonGroup{Classification: d.Classification, Reason: d.Reason})
		}
		rest[i].All = append(rest[i].All, d)
	}
	return matter, rest
}

// siftDifferences sifts what differs in any pair, each difference once.
func (c *Comparison) siftDifferences() (matter []distinctDifference, rest []reasonGroup) {
	return siftByReason(c.distinct(), func(f distinctDifference) compare.Difference { return f.Difference })
}

// aspect says what of an object, a check or a step differs.
func aspect(d compare.Difference) string {
	if d.Aspect == compare.Verdicts {
		return string(d.Aspect)
	}
	return string(d.Aspect) + ": " + d.What
}

func (c *Comparison) write(b *strings.Builder, s style) {
	fmt.Fprintf(b, "## %s: %s\n\n", c.Scenario, c.countsText())
	matter, rest := c.siftDifferences()
	for _, f := range matter {
		fmt.Fprintf(b, "- %s: %s, %s\n", f.Classification, s.text(f.Object), s.text(aspect(f.Difference)))
		fmt.Fprintf(b, "  - %s: %s; %s: %s\n", s.text(c.Subject), s.text(cmp.Or(f.Subject, "none")), s.text(c.Base), s.text(cmp.Or(f.Base, "none")))
		if f.Reason != "" {
			fmt.Fprintf(b, "  - %s\n", s.text(f.Reason))
		}
		first := &c.Pairs[f.first]
		fmt.Fprintf(b, "  - in %d of %d pairs, first with seed %d: %s and %s\n", f.pairs, len(c.Pairs), first.Subject.Seed,
			s.path(first.Subject.Directory), s.path(first.Base.Directory))
	}
	for _, a := range rest {
		fmt.Fprintf(b, "- %s, %d: %s\n", a.Classification, len(a.All), s.text(a.Reason))
	}
	if len(matter)+len(rest) > 0 {
		b.WriteString("\n")
	}
	c.writeCosts(b, s)
}

// writeCosts writes what the pairs cost, as far as it tells something.
func (c *Comparison) writeCosts(b *strings.Builder, s style) {
	if none := c.costSkippedReason(); none != "" {
		b.WriteString(none + "\n\n")
	}
	telling := c.shownCosts()
	if len(telling) == 0 {
		return
	}
	costs := costsOf(c.Subject, c.Base, telling)
	fmt.Fprintf(b, "%s\n\n%s", s.table(costs.table()), costs.How())
	if rest := len(c.Ratios) - len(telling); rest > 0 {
		fmt.Fprintf(b, "; %d more costs of which the pairs show no difference", rest)
	}
	b.WriteString("\n\n")
}

// shownCosts are the costs that the pairs show to differ, and those that everybody
// asks for.
func (c *Comparison) shownCosts() []compare.Ratio {
	asked := []string{
		compare.TimeToConverge, compare.EndpointsWrong, compare.CPUTime, compare.PeakMemory, compare.BytesSent, compare.BytesReceived,
	}
	return slices.DeleteFunc(slices.Clone(c.Ratios), func(r compare.Ratio) bool {
		finding, _ := r.Finding()
		return finding == compare.Same && !slices.Contains(asked, r.Metric)
	})
}
