package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Run is one run in the form that reports show.
type Run struct {
	Scenario    string
	Description string // of the scenario
	Subject     string
	Provider    string
	Seed        uint64
	// Controllers are the names of the controllers under test; none means the default
	// controllers. See [kube.ControllersNamed].
	Controllers []string
	// Directory is empty if the campaign deleted the directory because the run passed. Such
	// a run has no Versions, Results and Reproduce either.
	Directory string
	// Size is the number of steps and faults in the scenario.
	Size     int
	Started  time.Time // when the run was requested; zero if not known
	Duration time.Duration
	// Versions are the versions of all components, by name.
	Versions map[string]string
	// Results are in the order of the table of checks. There are none if the run was
	// aborted before its history could be checked.
	Results []check.Result
	// Verdict is the verdict of the run, and Reason explains it in one sentence.
	Verdict check.Verdict
	Reason  string
	// Reproduce is the command line that repeats the run.
	Reproduce string
}

// worstFirst is the order of verdicts in reports.
var worstFirst = []check.Verdict{check.Fail, check.Unknown, check.KnownUpstream, check.Pass, check.NotExercised}

func byVerdict(a, b check.Verdict) int {
	return cmp.Compare(slices.Index(worstFirst, a), slices.Index(worstFirst, b))
}

// sorted returns the runs, worst verdict first. Runs with equal verdicts keep their order.
func sorted(runs []Run) []Run {
	return slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int { return byVerdict(a.Verdict, b.Verdict) })
}

// sortedResults returns the results of a run, worst verdict first. Results with equal
// verdicts keep their order.
func (r *Run) sortedResults() []check.Result {
	return slices.SortedStableFunc(slices.Values(r.Results), func(a, b check.Result) int { return byVerdict(a.Verdict, b.Verdict) })
}

// withDirectory returns the runs that still have a directory. A campaign deletes the
// directories of runs that passed.
func withDirectory(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Directory == "" })
}

// needsNoExplanation reports whether a verdict is pass or not-exercised.
func needsNoExplanation(v check.Verdict) bool { return v == check.Pass || v == check.NotExercised }

// notPassed returns the results of a run with a verdict other than pass and not-exercised,
// worst first.
func (r *Run) notPassed() []check.Result {
	return slices.DeleteFunc(r.sortedResults(), func(result check.Result) bool { return needsNoExplanation(result.Verdict) })
}

// sharesReason reports whether the result and another one are unknown for the same reason.
// Such a reason belongs to the whole run: the run was aborted or has a gap in its history.
func (r *Run) sharesReason(result check.Result) bool {
	return result.Verdict == check.Unknown && slices.ContainsFunc(r.Results, func(other check.Result) bool {
		return other.Check != result.Check && other.Verdict == check.Unknown && other.Reason == result.Reason
	})
}

// worseThanResults reports whether the run's verdict is worse than the verdicts of its
// results. If so, reports show the reason of the run, because no result explains the
// verdict.
func (r *Run) worseThanResults() bool {
	worst := check.NotExercised
	for _, result := range r.Results {
		worst = check.Worst(worst, result.Verdict)
	}
	return len(r.Results) == 0 || check.Worst(worst, r.Verdict) != worst
}

// result returns the result of a check in a run, if the run has one.
func (r *Run) result(id string) (check.Result, bool) {
	i := slices.IndexFunc(r.Results, func(result check.Result) bool { return result.Check == id })
	if i < 0 {
		return check.Result{}, false
	}
	return r.Results[i], true
}

// checkIDs returns the IDs of the checks of all runs, worst verdict first. Checks with
// equal verdicts have the order of the results. It omits checks that apply to the controllers
// under test of no run.
func checkIDs(runs []Run) []string {
	var ids []string
	worst := map[string]check.Verdict{}
	for _, run := range runs {
		_, inapplicable := run.listedResults()
		skipped := idsOf(inapplicable)
		for _, result := range run.Results {
			if slices.Contains(skipped, result.Check) {
				continue
			}
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

// summarize returns the worst verdict of the runs, and the number of runs by verdict.
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
	return worst, fmt.Sprintf("%s: %s", countRuns(len(runs)), countsByVerdict(count))
}

// evidence returns a piece of evidence as lines of text.
func evidence(e check.Evidence) []string {
	lines := []string{fmt.Sprintf("at %s  %s", seconds(e.At), e.Summary)}
	if e.Expected != "" {
		lines = append(lines, "expected: "+e.Expected)
	}
	if e.Object != nil {
		lines = append(lines, "object: "+e.Object.String())
	}
	if e.KnownIssue != "" {
		lines = append(lines, "known upstream issue: "+e.KnownIssue)
	}
	if len(e.Records) > 0 {
		lines = append(lines, "history.jsonl: "+records(e.Records))
	}
	return lines
}

// more returns the number of violations that the result's evidence does not contain, as
// text. It returns "" if there are none.
func more(result check.Result) string {
	if n := result.Violations - len(result.Evidence); n > 0 {
		return fmt.Sprintf("and %d more violations", n)
	}
	return ""
}

// records returns references to lines of history.jsonl, such as "lines 3, 7".
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

// seconds formats a duration in seconds, to the millisecond.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }
