package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Run is what a report says of one run.
type Run struct {
	Scenario    string
	Description string // of the scenario
	Subject     string
	Provider    string
	Seed        uint64
	// Directory is empty if the run was not kept, as those of a hunt that passed are
	// not; then there are no versions, results and way to run it again either.
	Directory string
	// Size is how many steps and faults the scenario has.
	Size     int
	Started  time.Time // when it was asked for; zero if that is not known
	Duration time.Duration
	// Versions are those of what took part, by name.
	Versions map[string]string
	// Results are in the order of the table of checks; none if the run broke off
	// before there was anything to judge.
	Results []check.Result
	// Verdict is that of the run, and Reason one sentence on why.
	Verdict check.Verdict
	Reason  string
	// Reproduce is the command line that runs it again.
	Reproduce string
}

// worstFirst is the order of reports.
var worstFirst = []check.Verdict{check.Fail, check.Unknown, check.KnownUpstream, check.Pass, check.NotExercised}

func byVerdict(a, b check.Verdict) int {
	return cmp.Compare(slices.Index(worstFirst, a), slices.Index(worstFirst, b))
}

// sorted returns the runs, worst first, otherwise in their order.
func sorted(runs []Run) []Run {
	return slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int { return byVerdict(a.Verdict, b.Verdict) })
}

// sortedResults returns the results of a run, worst first, otherwise in their order.
func (r *Run) sortedResults() []check.Result {
	return slices.SortedStableFunc(slices.Values(r.Results), func(a, b check.Result) int { return byVerdict(a.Verdict, b.Verdict) })
}

// withDirectory returns the runs that have their directories.
func withDirectory(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Directory == "" })
}

// needsNoExplanation reports whether there is nothing to be explained about a verdict.
func needsNoExplanation(v check.Verdict) bool { return v == check.Pass || v == check.NotExercised }

// notPassed returns the results of a run that are no comfort.
func (r *Run) notPassed() []check.Result {
	return slices.DeleteFunc(r.sortedResults(), func(result check.Result) bool { return needsNoExplanation(result.Verdict) })
}

// sharesReason reports whether a result is unknown for a reason that others are unknown for
// as well: that of the run, which was broken off or not seen whole.
func (r *Run) sharesReason(result check.Result) bool {
	return result.Verdict == check.Unknown && slices.ContainsFunc(r.Results, func(other check.Result) bool {
		return other.Check != result.Check && other.Verdict == check.Unknown && other.Reason == result.Reason
	})
}

// worseThanResults reports whether the run's verdict is worse than those of its
// results, so that its reason is not among theirs.
func (r *Run) worseThanResults() bool {
	worst := check.NotExercised
	for _, result := range r.Results {
		worst = check.Worst(worst, result.Verdict)
	}
	return len(r.Results) == 0 || check.Worst(worst, r.Verdict) != worst
}

// result returns the result of a check in a run, if there is one.
func (r *Run) result(id string) (check.Result, bool) {
	i := slices.IndexFunc(r.Results, func(result check.Result) bool { return result.Check == id })
	if i < 0 {
		return check.Result{}, false
	}
	return r.Results[i], true
}

// checkIDs are the checks of all runs: the worst first, otherwise in the order
// of the runs' results.
func checkIDs(runs []Run) []string {
	var ids []string
	worst := map[string]check.Verdict{}
	for _, run := range runs {
		for _, result := range run.Results {
			if _, ok := worst[result.Check]; !ok {
				ids = append(ids, result.Check)
				worst[result.Check] = check.NotExercised
			}
			worst[result.Check] = check.Worst(worst[result.Check], result.Verdict)
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return byVerdict(worst[a], worst[b]) })
	return ids
}

// summarize is the verdict of all runs together and a sentence on it.
func summarize(runs []Run) (check.Verdict, string) {
	if len(runs) == 0 {
		return check.Unknown, "nothing was run"
	}
	worst := check.NotExercised
	count := map[check.Verdict]int{}
	for _, run := range runs {
		worst = check.Worst(worst, run.Verdict)
		count[run.Verdict]++
	}
	var parts []string
	for _, verdict := range worstFirst {
		if count[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[verdict], verdict))
		}
	}
	return worst, fmt.Sprintf("%s: %s", countRuns(len(runs)), strings.Join(parts, ", "))
}

// evidence says in lines of text what shows a violation.
func evidence(e check.Evidence) []string {
	lines := []string{fmt.Sprintf("at %s  %s", seconds(e.At), e.Summary)}
	if e.Expected != "" {
		lines = append(lines, "expected: "+e.Expected)
	}
	if e.Object != nil {
		lines = append(lines, "object: "+e.Object.String())
	}
	if e.KnownIssue > 0 {
		lines = append(lines, fmt.Sprintf("as upstream is known to (harness/check/TRAPS.md, %d)", e.KnownIssue))
	}
	if len(e.Records) > 0 {
		lines = append(lines, "history.jsonl: "+records(e.Records))
	}
	return lines
}

// more says that a result has violations of which there is no evidence.
func more(result check.Result) string {
	if n := result.Violations - len(result.Evidence); n > 0 {
		return fmt.Sprintf("and %d more", n)
	}
	return ""
}

// records lists lines of a history.
func records(seqs []int64) string {
	words := make([]string, len(seqs))
	for i, seq := range seqs {
		words[i] = fmt.Sprint(seq)
	}
	noun := "lines "
	if len(words) == 1 {
		noun = "line "
	}
	return noun + strings.Join(words, ", ")
}

// seconds is a time for people, to the millisecond.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }
