package reports

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// FailureGroups writes how many runs of a campaign did not pass, and describes each failure group. The
// text is for a terminal. A campaign is a series of runs. A failure group contains the runs with the
// same failure.
//
// The first line has the failure, the number of runs with it, and the smallest run. The smallest
// run is the one with the fewest steps and faults. The second line has the command that reproduces
// this run, and the third line has the run's directory. If the campaign repeated this run on another
// provider, a fourth line says how the repetition ended.
//
// The argument runs is the number of all runs, and notPassed has the runs that did not pass.
func FailureGroups(w io.Writer, runs int, notPassed []Run) error {
	return writeFailureGroups(w, runs, notPassed, terminalStyle)
}

// FailureGroupsMarkdown writes the same content as [FailureGroups], but as Markdown.
func FailureGroupsMarkdown(w io.Writer, runs int, notPassed []Run) error {
	return writeFailureGroups(w, runs, notPassed, markdownStyle)
}

// writeFailureGroups writes the failure groups of a campaign in the given style.
func writeFailureGroups(w io.Writer, runs int, notPassed []Run, s style) error {
	var b strings.Builder
	b.WriteString(countRuns(runs))
	switch {
	case len(notPassed) > 0:
		fmt.Fprintf(&b, ", %d did not pass\n", len(notPassed))
	case runs > 0:
		b.WriteString(", all passed\n")
	default:
		b.WriteString(", no result\n")
	}
	for i, f := range groupFailures(notPassed) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n  reproduce: %s\n  directory: %s\n", f.line(s), s.path(f.smallest.Reproduce), s.path(f.smallest.Directory))
		if f.smallest.Repeated != "" {
			fmt.Fprintf(&b, "  repeated: %s\n", f.smallest.Repeated)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the failure groups: %w", err)
	}
	return nil
}

// failureCount matches the line with the number of runs that [FailureGroups] writes.
var failureCount = regexp.MustCompile(`(?m)^\d+ runs?, (\d+ did not pass|all passed|no result)$`)

// HasFailureGroups reports whether a text contains what [FailureGroups] writes.
func HasFailureGroups(text []byte) bool { return failureCount.Match(text) }

// Failure is a failed check of a run. The run represents a failure group: all runs in which the
// same check failed for the same reason.
type Failure struct {
	// Run is the run of the group with the fewest steps and faults.
	Run *Run
	// Check is the ID of the check that failed.
	Check string

	key failureKey
}

// FailedChecks returns one failure for each failure group whose runs have a failed check. The
// order is that of [FailureGroups].
func FailedChecks(runs []Run) []Failure {
	var all []Failure
	for _, group := range groupFailures(runs) {
		if group.verdict == check.Fail && group.check != "" {
			all = append(all, Failure{group.smallest, group.check, group.failureKey})
		}
	}
	return all
}

// In reports whether another run has the same failure: one that belongs to the same failure group.
// In examines every violation in the other run, because the first one may belong to another group.
func (f Failure) In(other *Run) bool {
	return slices.ContainsFunc(other.Results, func(result check.Result) bool {
		return slices.Contains(failureKeysOf(f.key.subject, result), f.key)
	})
}

// failureKey identifies a failure group. Results with equal keys count as the same failure.
type failureKey struct {
	verdict check.Verdict
	subject string
	check   string // the ID of the check; empty for a failure of the whole run
	// resource is the resource of the object that violates the guarantee, such as "pods", from the
	// first piece of evidence. It is empty if that evidence names no object.
	resource string
	// signature is the failure's reason, with "…" instead of names and numbers that differ from
	// run to run.
	signature string
}

// failureGroup has what reports show about the runs of a campaign that have the same failure.
type failureGroup struct {
	failureKey
	runs      int      // the number of runs with the failure
	scenarios []string // the names of the scenarios of these runs, each once
	smallest  *Run     // the run with the failure that has the fewest steps and faults
	reason    string   // the reason of the failure in the smallest run
}

// title returns the check and the resource of the failure, such as "max-surge of pods". For a
// failure of the whole run, which belongs to no check, it returns "the run itself".
func (s failureKey) title() string {
	switch {
	case s.check == "":
		return "the run itself"
	case s.resource == "":
		return s.check
	default:
		return s.check + " of " + s.resource
	}
}

// line describes the failure group in one line: what failed, in how many runs, and the reason.
func (f failureGroup) line(s style) string {
	return fmt.Sprintf("%s %s, %s: in %s of %s, smallest run with seed %d: %s",
		strings.ToUpper(string(f.verdict)), f.subject, s.text(f.title()), countRuns(f.runs), f.scenarioText(), f.smallest.Seed, s.text(f.reason))
}

// scenarioText returns the name of the scenario of the group's run with the fewest steps and
// faults. The text also says how many other scenarios have the same failure. An example is
// "rollout and 2 more".
func (f failureGroup) scenarioText() string {
	if more := len(f.scenarios) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", f.smallest.Scenario, more)
	}
	return f.smallest.Scenario
}

// failureKeyOf returns the key of the failure group to which a result belongs. The argument subject
// is the name of the controllers under test in the result's run.
//
// The key's signature comes from the summary of the first piece of evidence. Without evidence,
// it comes from the reason of the result.
func failureKeyOf(subject string, result check.Result) failureKey {
	s := failureKey{verdict: result.Verdict, subject: subject, check: result.Check}
	if len(result.Evidence) == 0 {
		s.signature = signature(result.Reason)
		return s
	}
	first := result.Evidence[0]
	summary := first.Summary
	if first.Object != nil {
		s.resource = first.Object.Resource
		// The same failure of another object belongs to the same group.
		named := regexp.MustCompile(`\b([A-Z][A-Za-z]+) ` + regexp.QuoteMeta(first.Object.Name) + `\b`)
		summary = named.ReplaceAllString(summary, "$1 …")
	}
	s.signature = signature(summary)
	return s
}

// failureKeysOf returns the keys of all violations in a result. The first one is that of failureKeyOf.
func failureKeysOf(subject string, result check.Result) []failureKey {
	keys := []failureKey{failureKeyOf(subject, result)}
	for i := 1; i < len(result.Evidence); i++ {
		only := result
		only.Evidence = result.Evidence[i : i+1]
		keys = append(keys, failureKeyOf(subject, only))
	}
	return keys
}

// runSpecific matches the parts of a reason that differ between runs with the same failure. These
// are numbers, names with a namespace or a generated suffix, and names of replicas of the
// controllers under test, such as subject-0.
var runSpecific = regexp.MustCompile(`[\w.-]+/[\w./-]+|\b[a-z0-9]+(-[a-z0-9]+)*-[bcdfghjklmnpqrstvwxz2456789]{5,10}\b|\bsubject-\d+\b|\d+(\.\d+)?`)

// signature replaces the run-specific parts of a reason by "…". The reasons of one failure in
// different runs then become equal.
func signature(sentence string) string { return runSpecific.ReplaceAllString(sentence, "…") }

// countRuns formats a number of runs as text: "1 run", "2 runs".
func countRuns(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// groupFailures returns the failures of runs in groups: results with equal failure keys are in one
// group.
//
// The groups are sorted by verdict (worst first), then by number of runs (largest first), then by
// first occurrence.
//
// A result is a failure only if it has the verdict of its run. For example, the unknown results of
// a run that failed are ignored. Several checks of a run may be unknown for the same reason. They
// are then one failure of the whole run, which belongs to no check.
func groupFailures(runs []Run) []failureGroup {
	var all []failureGroup
	add := func(run *Run, s failureKey, reason string) {
		i := slices.IndexFunc(all, func(f failureGroup) bool { return f.failureKey == s })
		if i < 0 {
			i = len(all)
			all = append(all, failureGroup{failureKey: s, smallest: run, reason: reason})
		}
		f := &all[i]
		f.runs++
		if !slices.Contains(f.scenarios, run.Scenario) {
			f.scenarios = append(f.scenarios, run.Scenario)
		}
		if run.Size < f.smallest.Size {
			f.smallest, f.reason = run, reason
		}
	}
	for i := range runs {
		run := &runs[i]
		if run.worseThanResults() && !needsNoExplanation(run.Verdict) {
			add(run, failureKey{verdict: run.Verdict, subject: run.Subject, signature: signature(run.Reason)}, run.Reason)
		}
		added := map[failureKey]bool{}
		for _, result := range run.notPassed() {
			key := failureKeyOf(run.Subject, result)
			if run.sharesReason(result) {
				key = failureKey{verdict: result.Verdict, subject: run.Subject, signature: signature(result.Reason)}
			}
			if result.Verdict == run.Verdict && !added[key] {
				added[key] = true
				add(run, key, result.Reason)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b failureGroup) int {
		return cmp.Or(byVerdict(a.verdict, b.verdict), cmp.Compare(b.runs, a.runs))
	})
	return all
}

// WithoutFailuresOf returns a copy of the run without the failures that also occur in the given
// other runs. If the other runs had no faults, for example, the remaining failures are those that a
// fault caused.
//
// Two violations are the same failure if they belong to the same failure group. A result is removed if
// the other runs have all its violations. If their evidence does not list all violations of the check, the
// first one is enough. WithoutFailuresOf also removes the unknown result of a check that did not pass in
// one of the other runs, because such a result shows nothing new. It computes the verdict of the copy from
// the remaining results. The verdict is unknown if none of them is pass, or if the run is inconclusive.
func (r *Run) WithoutFailuresOf(others []Run) Run {
	known, checks, incomplete := map[failureKey]bool{}, map[string]bool{}, map[string]bool{}
	for i := range others {
		for _, result := range others[i].notPassed() {
			checks[result.Check] = true
			incomplete[result.Check] = incomplete[result.Check] || result.Violations > len(result.Evidence)
			for _, key := range failureKeysOf(r.Subject, result) {
				known[key] = true
			}
		}
	}
	own := *r
	own.Results = slices.DeleteFunc(slices.Clone(r.Results), func(result check.Result) bool {
		keys := failureKeysOf(r.Subject, result)
		if incomplete[result.Check] {
			keys = keys[:1]
		}
		isNew := slices.ContainsFunc(keys, func(key failureKey) bool { return !known[key] })
		return !isNew || result.Verdict == check.Unknown && checks[result.Check]
	})
	if len(own.Results) == len(r.Results) {
		return own
	}
	own.Verdict, own.Reason = check.Pass, "the other runs show every failure of this run"
	switch {
	case own.Inconclusive != "":
		own.Verdict, own.Reason = check.Unknown, own.Inconclusive
	case !slices.ContainsFunc(own.Results, func(result check.Result) bool { return result.Verdict == check.Pass }):
		own.Verdict, own.Reason = check.Unknown, "the other runs show every failure of this run, and no check passed"
	}
	for _, result := range own.notPassed() {
		if check.Worst(own.Verdict, result.Verdict) != own.Verdict {
			own.Verdict, own.Reason = result.Verdict, fmt.Sprintf("%s: %s", result.Check, result.Reason)
		}
	}
	return own
}
