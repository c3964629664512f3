package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Caught writes what a hunt through many seeds came to: how many runs there were,
// and a line for each distinct failure among those that did not pass, with the
// first run that showed it. It is text for a terminal and Markdown alike.
func Caught(w io.Writer, runs int, caught []Run) error {
	var b strings.Builder
	b.WriteString(countRuns(runs))
	switch {
	case len(caught) > 0:
		fmt.Fprintf(&b, ", %d did not pass\n", len(caught))
	case runs > 0:
		b.WriteString(", none that did not pass\n")
	default:
		b.WriteString(", nothing is known\n")
	}
	for i, f := range distinct(caught) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n  again: %s, seen in %s\n", f, code(f.first.Again), code(f.first.Directory))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing what was caught: %w", err)
	}
	return nil
}

// failure is one thing that went wrong, in any number of runs.
type failure struct {
	verdict  check.Verdict
	subject  string
	scenario string
	check    string // empty where the run as a whole gives no answer
	reason   string // of the first
	times    int
	first    *Run
}

func (f failure) String() string {
	what := f.check
	if what == "" {
		what = "the run itself"
	}
	return fmt.Sprintf("%s %s, %s, %s: in %s, first with seed %d: %s",
		strings.ToUpper(string(f.verdict)), f.subject, f.scenario, escape(what), countRuns(f.times), f.first.Seed, escape(f.reason))
}

func countRuns(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// distinct returns what went wrong in the runs: the same check with the same
// verdict in the same scenario on the same subject is one failure. The worst come
// first, otherwise those seen first. Where a check failed, what is unknown for
// it says nothing more.
func distinct(runs []Run) []failure {
	var all []failure
	add := func(run *Run, verdict check.Verdict, id, reason string) {
		i := slices.IndexFunc(all, func(f failure) bool {
			return f.verdict == verdict && f.subject == run.Subject && f.scenario == run.Scenario && f.check == id
		})
		if i < 0 {
			i = len(all)
			all = append(all, failure{verdict: verdict, subject: run.Subject, scenario: run.Scenario, check: id, reason: reason, first: run})
		}
		all[i].times++
	}
	for i := range runs {
		run := &runs[i]
		if run.ownVerdict() {
			add(run, run.Verdict, "", run.Reason)
		}
		for _, result := range run.broken() {
			if result.Verdict == run.Verdict {
				add(run, result.Verdict, result.Check, result.Reason)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b failure) int { return byVerdict(a.verdict, b.verdict) })
	return all
}
