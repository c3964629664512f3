package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// findings collects the violations that one checker found, and derives its verdict from them.
// Most checkers embed this type.
type findings struct {
	exercised  int        // number of events that could have violated the guarantee
	violations int        // number of violations, with and without a known upstream issue
	evidence   []Evidence // the first violations, at most evidenceMax
	// knownViolations is the number of violations that a known upstream issue explains.
	// knownIssue is the issue that explains the first of them.
	knownViolations int
	knownIssue      *KnownIssue
	// doubtful is the number of violations shortly after a stall of the machine so long that they
	// prove nothing. stalled is the duration of the longest such stall.
	doubtful int
	stalled  time.Duration
	// excusesStalls is true if the checker decides itself which stalls excuse a violation. No
	// violation is then doubtful.
	excusesStalls bool
	// upstream is Settings.Upstream: the subject is kube-controller-manager, or is built from its
	// source.
	upstream bool
}

// evidenceMax is the maximum number of violations that a result describes. Result.Violations
// counts all of them.
const evidenceMax = 5

// addViolation counts a violation. It calls describe only for the first evidenceMax
// violations, because formatting the evidence is slow.
func (f *findings) addViolation(describe func() Evidence) {
	f.violations++
	if len(f.evidence) < evidenceMax {
		e := describe()
		slices.Sort(e.Records)
		e.Records = slices.Compact(e.Records)
		f.evidence = append(f.evidence, e)
	}
}

// addKnownViolation counts a violation that the given known upstream issue explains.
func (f *findings) addKnownViolation(issue *KnownIssue, describe func() Evidence) {
	f.knownViolations++
	f.knownIssue = cmp.Or(f.knownIssue, issue)
	f.addViolation(func() Evidence {
		e := describe()
		e.KnownIssue = issue.Slug
		return e
	})
}

// all returns the findings. The runner calls it on checkers that embed findings.
func (f *findings) all() *findings { return f }

// addContext adds the cached pods and the stalls to the violations of the current record. The
// parameter before is the number of earlier violations.
//
// If the machine stalled for lag (1 s) or longer, these violations prove nothing: the order of
// the events that the subject acted on may differ from the history.
func (f *findings) addContext(m *Model, before int) {
	if m.sent == nil || f.violations == before {
		return
	}
	for i := before; i < len(f.evidence); i++ {
		f.evidence[i].Stalled = m.stalls.lately(m.now, machine, m.sent.process.name)
		if state := m.sent.ownerState; state != nil {
			f.evidence[i].Cached = state.describePods()
		}
	}
	if stalled := m.stalls.lately(m.now, machine); stalled >= lag && !f.excusesStalls {
		f.doubtful += f.violations - before
		f.stalled = max(f.stalled, stalled)
	}
}

// Result returns the verdict on the violations that were added.
//
//   - known-upstream: there are violations, known upstream issues explain all of them, and the
//     subject is kube-controller-manager or is built from its source.
//   - unknown: the machine stalled for too long before each of them.
//   - fail: there are violations in any other case.
//   - pass: there are no violations, but something could have violated the guarantee.
//   - not-exercised: nothing could have violated the guarantee.
func (f *findings) Result() Result {
	result := Result{Exercised: f.exercised, Violations: f.violations, Evidence: f.evidence}
	switch {
	case f.violations > 0:
		result.Verdict = Fail
		result.Reason = "violated " + times(f.violations) + "; first: " + f.evidence[0].reason()
		if f.knownViolations == f.violations {
			result.Reason += "; " + f.knownIssue.String()
		}
		if f.knownViolations == f.violations && f.upstream {
			result.Verdict = KnownUpstream
		} else if f.doubtful == f.violations {
			result.Verdict = Unknown
			result.Reason = fmt.Sprintf("the machine stalled for %s, so this proves nothing: %s", seconds(f.stalled), f.evidence[0].reason())
		}
	case f.exercised == 0:
		result.Verdict, result.Reason = NotExercised, "this run never exercised the guarantee"
	default:
		result.Verdict, result.Reason = Pass, "held; exercised "+times(f.exercised)
	}
	return result
}

// times formats a count as "once", or for example as "3 times".
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// reason returns one line with what the check found and what it expected. Result.Reason
// contains this line.
func (e Evidence) reason() string {
	reason := e.Summary
	if e.Expected != "" {
		reason += "; expected " + e.Expected
	}
	if e.Stalled > 0 {
		reason += fmt.Sprintf("; the subject or gauntlet had no CPU time for %s shortly before", seconds(e.Stalled))
	}
	return reason
}

// podName formats a pod as "pod namespace/name".
func podName(p *objects.Pod) string { return "pod " + p.Namespace + "/" + p.Name }

// rangeText formats a range of allowed values, such as "2 to 4". If the bounds are equal, it
// returns the value.
func rangeText(low, high int) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// callName formats a call for evidence: verb, resource, subresource, and namespace/name.
func callName(c *call) string {
	key := c.key
	if c.verb == callCreatePod { // the key of a create ends with the UID of the owner
		key = strings.TrimSuffix(key, string(c.ownerState.uid))
	}
	return strings.Join(strings.Fields(key), " ")
}

// evidenceOf returns evidence about an object, with the time and the number of the current
// record.
func (m *Model) evidenceOf(ref *history.Ref, found, expected string) Evidence {
	return Evidence{Summary: found, Expected: expected, Object: ref, At: m.now, Records: []int64{m.seq}}
}

// requestRef returns the resource, namespace and name of the object that a request names.
func requestRef(r *history.Request) *history.Ref {
	return &history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
}

// seconds formats a duration for evidence, rounded to a tenth of a second.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// podRef returns the reference of a pod. It returns nil if p is nil.
func podRef(p *objects.Pod) *history.Ref {
	if p == nil {
		return nil
	}
	return &p.Ref
}
