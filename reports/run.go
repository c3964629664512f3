package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Run has what reports show about one run. The HTML page of a single run also shows the run's
// [Detail].
type Run struct {
	Scenario    string // the name of the scenario
	Description string // the description of the scenario
	Subject     string // the name of the controllers under test, such as ours or upstream
	Provider    string // the name of the provider of the cluster
	VirtualTime bool   // true if the run was on a virtual clock; Duration is then virtual time too
	Seed        uint64 // the seed of the run
	// Controllers has the names of the controllers under test, such as deployment-controller, or
	// the names of an operator's controllers. It is empty if the default controllers are under test;
	// see [kube.ControllersNamed].
	Controllers []string
	// Directory is the run directory. It is empty if a campaign deleted the directory of a passed
	// run. The fields Versions, Results and Reproduce are then empty too.
	Directory string
	// Size is the number of steps plus the number of faults of the scenario. If several runs have
	// the same failure, reports show the run with the smallest size.
	Size     int
	Started  time.Time     // the time at which the run was requested; zero if unknown
	Duration time.Duration // the time from the first to the last record of the history
	// Stalled is how long gauntlet got no CPU time, plus how long the threads of the replica that
	// stalled longest waited for a CPU. It is 0 if the run was read from files of an earlier version.
	Stalled time.Duration
	// Versions has the version of each component of the run, by the component's name.
	Versions map[string]string
	// Results has the results of the checks in the order of the command gauntlet list checks. It
	// is empty if the run was aborted before any check could read its history.
	Results []check.Result
	// Faults says how often each fault fired. The faults are in the order of the scenario.
	Faults []check.FaultCount
	// UnusedPermissions has the RBAC permissions of the controllers under test that no request of
	// the run needed. An example is "update deployments.apps/status". Unused permissions do not
	// influence the verdict. The field is empty unless a subject file describes the controllers and
	// their role bindings.
	UnusedPermissions []string
	// Verdict is the conclusion about the whole run, such as pass or fail.
	Verdict check.Verdict
	// Reason explains the verdict in one sentence.
	Reason string
	// Reproduce is the command line that repeats the run.
	Reproduce string
	// Inconclusive says why the run would be unknown even if every check passed, such as a fault that
	// failed. It is empty if there is no reason, or if the run was read from files.
	Inconclusive string
	// Repeated says how the run ended when a campaign repeated it on another provider. It is empty
	// if the campaign did not repeat the run.
	Repeated string
}

// worstFirst has all verdicts from worst to best. Reports sort runs and checks in this order.
var worstFirst = []check.Verdict{check.Fail, check.Unknown, check.KnownUpstream, check.Pass, check.NotExercised}

// byVerdict compares two verdicts for sorting, worst first. It returns a negative number if a is
// worse than b, and 0 if the verdicts are equal.
func byVerdict(a, b check.Verdict) int {
	return cmp.Compare(slices.Index(worstFirst, a), slices.Index(worstFirst, b))
}

// sorted returns a copy of the runs, sorted by verdict, worst first. Runs with equal verdicts keep
// their order.
func sorted(runs []Run) []Run {
	return slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int { return byVerdict(a.Verdict, b.Verdict) })
}

// sortedResults returns the run's results, sorted by verdict, worst first. Results with equal
// verdicts keep their order.
func (r *Run) sortedResults() []check.Result {
	return slices.SortedStableFunc(slices.Values(r.Results), func(a, b check.Result) int { return byVerdict(a.Verdict, b.Verdict) })
}

// withDirectory returns the runs whose directory still exists. The terminal report shows only
// these runs one by one. A campaign, which is a series of runs, deletes the directories of its
// passed runs.
func withDirectory(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Directory == "" })
}

// needsNoExplanation reports whether a verdict is pass or not-exercised. Reports need not explain
// such a verdict.
func needsNoExplanation(v check.Verdict) bool { return v == check.Pass || v == check.NotExercised }

// notPassed returns the run's results except those with the verdict pass or not-exercised. The
// worst verdict is first.
func (r *Run) notPassed() []check.Result {
	return slices.DeleteFunc(r.sortedResults(), func(result check.Result) bool { return needsNoExplanation(result.Verdict) })
}

// sharesReason reports whether a result is unknown for the same reason as another check of the
// run. The reason is then about the whole run, for example that its history is incomplete.
func (r *Run) sharesReason(result check.Result) bool {
	return result.Verdict == check.Unknown && slices.ContainsFunc(r.Results, func(other check.Result) bool {
		return other.Check != result.Check && other.Verdict == check.Unknown && other.Reason == result.Reason
	})
}

// worseThanResults reports whether the run's verdict is worse than the verdict of every check. No
// check then explains the run's verdict, so reports show the run's own reason. worseThanResults
// returns true for a run without results.
func (r *Run) worseThanResults() bool {
	worst := check.NotExercised
	for _, result := range r.Results {
		worst = check.Worst(worst, result.Verdict)
	}
	return len(r.Results) == 0 || check.Worst(worst, r.Verdict) != worst
}

// Undecided reports whether all checks of the run are unknown for the same reason. For example, the
// controllers under test did not start. Reports then show the reason once instead of a table of
// checks. Checks of controllers that are not under test do not count. Undecided returns false for
// a run with fewer than two other checks.
func (r *Run) Undecided() bool {
	listed, _ := r.listedResults()
	return len(listed) > 1 && !slices.ContainsFunc(listed, func(result check.Result) bool {
		return result.Verdict != check.Unknown || result.Reason != listed[0].Reason || len(result.Evidence) > 0
	})
}

// result returns the run's result of the check with the given ID. The bool is false if the run has
// no such result.
func (r *Run) result(id string) (check.Result, bool) {
	i := slices.IndexFunc(r.Results, func(result check.Result) bool { return result.Check == id })
	if i < 0 {
		return check.Result{}, false
	}
	return r.Results[i], true
}

// checkIDs returns each check ID that occurs in the runs, worst verdict first. Checks with equal
// verdicts keep the order in which they occur.
//
// checkIDs omits checks that apply to none of the controllers under test.
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

// summarize returns the worst verdict of the runs, and counts by verdict such as "3 runs: 1 fail, 2
// pass". Without runs, it returns the verdict unknown.
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

// series has the runs that a report is about. A campaign may have been interrupted before it made
// all runs. The field interrupted then says so, such as "interrupted after 7 of 40 runs".
type series struct {
	runs        []Run
	interrupted string // empty if the series is complete
}

// summarize returns the worst verdict of the runs, and counts by verdict. For an interrupted
// series, the text begins with the interruption. The verdict is then unknown, unless a run has the
// verdict fail.
func (s series) summarize() (check.Verdict, string) {
	verdict, reason := summarize(s.runs)
	if s.interrupted == "" {
		return verdict, reason
	}
	return check.Worst(verdict, check.Unknown), s.interrupted + "; " + reason
}

// durationText returns the duration of the run, such as "13.6 s" or "13.6 s of virtual time".
func (r *Run) durationText() string {
	text := fmt.Sprintf("%.1f s", r.Duration.Seconds())
	if r.VirtualTime {
		text += " of virtual time"
	}
	return text
}

// faultsText returns one line about how often the faults of a run took effect. It returns "" for
// a run without faults. Faults of the same type share one count. An example is "api-error refused
// 2 of 11 matching requests, restart once; never fired: watch-delay".
func (r *Run) faultsText() string {
	var names []string
	fired, summaries := map[string]int{}, map[string][]string{}
	for _, fault := range r.Faults {
		if _, ok := fired[fault.Name]; !ok {
			names = append(names, fault.Name)
		}
		fired[fault.Name] += fault.Fired
		summaries[fault.Name] = append(summaries[fault.Name], fault.Summary)
	}
	var did, never []string
	for _, name := range names {
		n, of := fired[name], summaries[name]
		switch {
		case n == 0:
			never = append(never, name)
		case len(of) == 1 && of[0] != "":
			did = append(did, name+" "+of[0])
		case n == 1:
			did = append(did, name+" once")
		default:
			did = append(did, fmt.Sprintf("%s %d times", name, n))
		}
	}
	// Also list the single faults that never fired, if another fault of the same type fired.
	for i, fault := range r.Faults {
		if fault.Fired == 0 && fired[fault.Name] > 0 {
			never = append(never, fmt.Sprintf("%s (fault %d)", fault.Name, i))
		}
	}
	text := strings.Join(did, ", ")
	if len(never) > 0 {
		if text != "" {
			text += "; "
		}
		text += "never fired: " + strings.Join(never, ", ")
	}
	return text
}

// EvidenceLines formats a piece of evidence, which describes one violation, as lines of text.
//
// The lines have the time and the summary, the expected behavior, the object and the pods in the
// cache. Lines about a lack of CPU time, the known upstream issue and the line numbers in
// history.jsonl follow. Empty fields have no line.
func EvidenceLines(e check.Evidence) []string {
	lines := []string{fmt.Sprintf("at %s  %s", seconds(e.At), e.Summary)}
	if e.Expected != "" {
		lines = append(lines, "expected: "+e.Expected)
	}
	if e.Object != nil {
		lines = append(lines, "object: "+e.Object.String())
	}
	if e.Cached != "" {
		lines = append(lines, "in the cache: "+e.Cached)
	}
	if e.Stalled > 0 {
		lines = append(lines, fmt.Sprintf("stalled: the subject or gauntlet had no CPU time for %s shortly before this violation", seconds(e.Stalled)))
	}
	if e.KnownIssue != "" {
		lines = append(lines, "matches known upstream issue: "+e.KnownIssue)
	}
	if len(e.Records) > 0 {
		lines = append(lines, "history.jsonl: "+records(e.Records))
	}
	return lines
}

// more returns a text that says how many violations a result counted but did not describe in its
// evidence. An example is "and 3 more violations". more returns "" if the evidence describes
// every violation.
func more(result check.Result) string {
	if n := result.Violations - len(result.Evidence); n > 0 {
		return fmt.Sprintf("and %d more violations", n)
	}
	return ""
}

// records formats the line numbers of records in history.jsonl, such as "lines 3, 7" or "line 3".
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

// seconds formats a duration in seconds with three decimals, such as "1.500s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }
