package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
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
}

// Undeclared returns how many differences of a comparison nobody has declared, and
// how many guarantees both subjects break.
func (c *Comparison) Undeclared() (undeclared, bothWrong int) {
	for _, d := range c.distinct() {
		switch d.Standing {
		case compare.Undeclared:
			undeclared++
		case compare.BothWrong:
			bothWrong++
		}
	}
	return undeclared, bothWrong
}

// found is one difference, in any number of pairs.
type found struct {
	compare.Difference // of the first pair
	pairs              int
	first              *Pair
}

// distinct returns the differences in all pairs, worst first.
func (c *Comparison) distinct() []found {
	var all []found
	for i := range c.Pairs {
		for _, d := range c.Pairs[i].Differences {
			same := func(f found) bool {
				return f.Aspect == d.Aspect && f.Object == d.Object && f.What == d.What && f.Standing == d.Standing
			}
			place := slices.IndexFunc(all, same)
			if place < 0 {
				place = len(all)
				all = append(all, found{Difference: d, first: &c.Pairs[i]})
			}
			all[place].pairs++
		}
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return slices.Index(compare.WorstFirst, a.Standing) - slices.Index(compare.WorstFirst, b.Standing)
	})
	return all
}

// Compared writes what comparisons came to: for each scenario the differences that
// matter, the accepted ones by their reasons, and what it cost. It is text for a
// terminal and, but for the tables of costs, Markdown alike.
func Compared(w io.Writer, comparisons []Comparison) error {
	var b strings.Builder
	for _, c := range comparisons {
		if err := c.write(&b); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing a comparison: %w", err)
	}
	return nil
}

func (c *Comparison) write(b *strings.Builder) error {
	undeclared, bothWrong := c.Undeclared()
	verdict := "no undeclared difference"
	if undeclared > 0 {
		verdict = fmt.Sprintf("%d undeclared", undeclared)
	}
	if bothWrong > 0 {
		verdict += fmt.Sprintf(", %d both wrong", bothWrong)
	}
	fmt.Fprintf(b, "## %s: %s and %s, pairs: %d, %s\n\n", c.Scenario, c.Subject, c.Base, len(c.Pairs), verdict)
	accepted := map[string]int{}
	var reasons []string
	for _, f := range c.distinct() {
		if f.Standing == compare.Accepted {
			if accepted[f.Reason]++; accepted[f.Reason] == 1 {
				reasons = append(reasons, f.Reason)
			}
			continue
		}
		fmt.Fprintf(b, "- %s: %s\n", f.Standing, escape(f.Difference.String()))
		if f.Reason != "" {
			fmt.Fprintf(b, "  %s\n", escape(f.Reason))
		}
		fmt.Fprintf(b, "  in %d of %d pairs, first with seed %d: %s and %s\n", f.pairs, len(c.Pairs), f.first.Subject.Seed,
			code(f.first.Subject.Directory), code(f.first.Base.Directory))
	}
	for _, reason := range reasons {
		fmt.Fprintf(b, "- accepted, %d: %s\n", accepted[reason], escape(reason))
	}
	if len(reasons) > 0 || undeclared+bothWrong > 0 {
		b.WriteString("\n")
	}
	telling := c.telling()
	if len(telling) == 0 {
		return nil
	}
	if err := Ratios(b, c.Subject, c.Base, telling); err != nil {
		return err
	}
	if rest := len(c.Ratios) - len(telling); rest > 0 {
		fmt.Fprintf(b, "%d more costs of which the pairs show no difference\n", rest)
	}
	b.WriteString("\n")
	return nil
}

// telling are the costs that the pairs show to differ, and those that everybody
// asks for.
func (c *Comparison) telling() []compare.Ratio {
	asked := []string{compare.TimeToConverge, compare.CPUTime, compare.PeakMemory}
	return slices.DeleteFunc(slices.Clone(c.Ratios), func(r compare.Ratio) bool {
		finding, _ := r.Finding()
		return finding == compare.Same && !slices.Contains(asked, r.Metric)
	})
}

// ComparisonHTML writes a pair as one page: what differs, the verdicts of both, and
// both timelines, so that the steps of the workload fall together.
func ComparisonHTML(w io.Writer, pair *Pair, dir string) error {
	data := &pageData{Compared: pair, Reason: fmt.Sprintf("%s: %s and %s, seed %d", pair.Subject.Scenario, pair.Subject.Subject, pair.Base.Subject, pair.Subject.Seed)}
	data.Verdict, _ = sum([]Run{pair.Subject, pair.Base})
	if slices.ContainsFunc(pair.Differences, func(d compare.Difference) bool { return d.Standing == compare.Undeclared }) {
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
		data.Drawings = &drawings{Runs: []*drawing{draw(a), draw(b)}, Knots: [][]int64{microseconds(ofA), microseconds(ofB)}}
	}
	return data.write(w)
}
