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

// FailureGroups writes what many runs came to: how many there were, and a line for each
// distinct failure among those that did not pass, with how often it was seen and
// the smallest scenario that shows it. It is text for a terminal and Markdown
// alike.
func FailureGroups(w io.Writer, runs int, caught []Run) error {
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
	for i, f := range groupFailures(caught) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n  again: %s, seen in %s\n", f, code(f.smallest.Reproduce), code(f.smallest.Directory))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing what was caught: %w", err)
	}
	return nil
}

// failureKey is what tells one failure from another.
type failureKey struct {
	verdict check.Verdict
	subject string
	check   string // empty where the run as a whole gives no answer
	// kind is what the failure is about, empty if it is about no object.
	kind string
	// signature is the reason without what is another in every run.
	signature string
}

// failureGroup is one thing that went wrong, in any number of runs.
type failureGroup struct {
	failureKey
	runs      int
	scenarios []string
	smallest  *Run   // in which it was seen, of those the first
	reason    string // in that run
}

// title is what broke: a check, and what it is about.
func (s failureKey) title() string {
	switch {
	case s.check == "":
		return "the run itself"
	case s.kind == "":
		return s.check
	default:
		return s.check + " of " + s.kind
	}
}

func (f failureGroup) String() string {
	return fmt.Sprintf("%s %s, %s: in %s of %s, smallest with seed %d: %s",
		strings.ToUpper(string(f.verdict)), f.subject, escape(f.title()), countRuns(f.runs), f.scenarioText(), f.smallest.Seed, escape(f.reason))
}

// scenarioText is the smallest scenario that shows the failure, and how many others do.
func (f failureGroup) scenarioText() string {
	if more := len(f.scenarios) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", f.smallest.Scenario, more)
	}
	return f.smallest.Scenario
}

// failureKeyOf is the symptom that a result shows, by the first of its evidence.
func failureKeyOf(subject string, result check.Result) failureKey {
	s := failureKey{verdict: result.Verdict, subject: subject, check: result.Check}
	if len(result.Evidence) == 0 {
		s.signature = signature(result.Reason)
		return s
	}
	first := result.Evidence[0]
	if first.Object != nil {
		s.kind = first.Object.Resource
	}
	s.signature = signature(first.Summary)
	return s
}

// runSpecific is what differs from run to run where the failure is the same: names
// of objects with their namespaces or with what the API server makes of a
// generateName, replicas of the subject, and numbers.
var runSpecific = regexp.MustCompile(`[\w.-]+/[\w./-]+|\b[a-z0-9]+(-[a-z0-9]+)*-[bcdfghjklmnpqrstvwxz2456789]{5}\b|\bsubject-\d+\b|\d+(\.\d+)?`)

// signature is a sentence without what is another in every run.
func signature(sentence string) string { return runSpecific.ReplaceAllString(sentence, "…") }

func countRuns(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// groupFailures returns what went wrong in the runs: the same check with the same
// verdict on the same subject is one failure if it is about the same kind of object
// and gives the same reason. The worst come first, then those seen most often,
// then those seen first. Where a check failed, what is unknown for it says nothing
// more. A reason for which several checks are unknown is the run's.
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
		told := map[failureKey]bool{}
		for _, result := range run.notPassed() {
			s := failureKeyOf(run.Subject, result)
			if run.sharesReason(result) {
				s = failureKey{verdict: result.Verdict, subject: run.Subject, signature: signature(result.Reason)}
			}
			if result.Verdict == run.Verdict && !told[s] {
				told[s] = true
				add(run, s, result.Reason)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b failureGroup) int {
		return cmp.Or(byVerdict(a.verdict, b.verdict), cmp.Compare(b.runs, a.runs))
	})
	return all
}
