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
	tested     int
	violations int
	evidence   []Evidence
	// known is how many of the violations look just like what upstream is known for,
	// weakness what the first of them looks like, and upstream, that it is.
	known    int
	weakness *KnownIssue
	upstream bool
}

// evidenceMax is how many violations are shown; all are counted.
const evidenceMax = 5

// violate notes a violation. To say what happened is costly, so it is said only
// of those that are shown.
func (f *findings) violate(say func() Evidence) {
	f.violations++
	if len(f.evidence) < evidenceMax {
		e := say()
		slices.Sort(e.Records)
		e.Records = slices.Compact(e.Records)
		f.evidence = append(f.evidence, e)
	}
}

// violateKnown notes a violation that is a weakness of upstream's, or looks like it.
func (f *findings) violateKnown(why *KnownIssue, say func() Evidence) {
	f.known++
	f.weakness = cmp.Or(f.weakness, why)
	f.violate(func() Evidence {
		e := say()
		e.KnownIssue = why.Trap
		return e
	})
}

// Result is the verdict that the findings amount to.
func (f *findings) Result() Result {
	result := Result{Exercised: f.tested, Violations: f.violations, Evidence: f.evidence}
	switch {
	case f.violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("broken %s; first: %s", times(f.violations), f.evidence[0].Summary)
		if f.known == f.violations {
			result.Reason += "; " + f.weakness.String()
		}
		if f.known == f.violations && f.upstream {
			result.Verdict = KnownUpstream
		}
	case f.tested == 0:
		result.Verdict, result.Reason = NotExercised, "nothing put it to the test"
	default:
		result.Verdict, result.Reason = Pass, "held, tested "+times(f.tested)
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

// refOf names what a request is about.
func refOf(r *history.Request) *history.Ref {
	return &history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
}

// seconds is how evidence writes a time.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// podIn names a pod in evidence.
func podIn(p *pod) *history.Ref {
	if p == nil {
		return nil
	}
	return &p.Ref
}
