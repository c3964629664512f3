package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// findings is what a judge has found so far; judges embed it.
type findings struct {
	exercised  int
	violations int
	evidence   []Evidence
	// knownViolations is how many of the violations look just like what upstream is known for,
	// weakness what the first of them looks like, and upstream, that it is.
	knownViolations int
	knownIssue      *KnownIssue
	upstream        bool
}

// evidenceMax is how many violations are shown; all are counted.
const evidenceMax = 5

// addViolation notes a violation. To say what happened is costly, so it is said only
// of those that are shown.
func (f *findings) addViolation(say func() Evidence) {
	f.violations++
	if len(f.evidence) < evidenceMax {
		e := say()
		slices.Sort(e.Records)
		e.Records = slices.Compact(e.Records)
		f.evidence = append(f.evidence, e)
	}
}

// addKnownViolation notes a violation that is a weakness of upstream's, or looks like it.
func (f *findings) addKnownViolation(why *KnownIssue, say func() Evidence) {
	f.knownViolations++
	f.knownIssue = cmp.Or(f.knownIssue, why)
	f.addViolation(func() Evidence {
		e := say()
		e.KnownIssue = why.Slug
		return e
	})
}

// Result is the verdict that the findings amount to.
func (f *findings) Result() Result {
	result := Result{Exercised: f.exercised, Violations: f.violations, Evidence: f.evidence}
	switch {
	case f.violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("broken %s; first: %s", times(f.violations), f.evidence[0].Summary)
		if f.knownViolations == f.violations {
			result.Reason += "; " + f.knownIssue.String()
		}
		if f.knownViolations == f.violations && f.upstream {
			result.Verdict = KnownUpstream
		}
	case f.exercised == 0:
		result.Verdict, result.Reason = NotExercised, "nothing put it to the test"
	default:
		result.Verdict, result.Reason = Pass, "held, tested "+times(f.exercised)
	}
	return result
}

// times says how often, in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// evidenceOf is evidence of what the current record does to an object.
func (m *Model) evidenceOf(ref *history.Ref, did, expected string) Evidence {
	return Evidence{Summary: did, Expected: expected, Object: ref, At: m.now, Records: []int64{m.seq}}
}

// requestRef names what a request is about.
func requestRef(r *history.Request) *history.Ref {
	return &history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
}

// seconds is how evidence writes a time.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// podRef names a pod in evidence.
func podRef(p *pod) *history.Ref {
	if p == nil {
		return nil
	}
	return &p.Ref
}
