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

// findings collects the violations that one checker finds, and derives the checker's verdict
// from them. Most checkers embed this type.
type findings struct {
	exercised  int        // number of events that could have violated the guarantee
	violations int        // number of violations, with and without a known upstream issue
	evidence   []Evidence // the first violations, at most evidenceMax
	// knownViolations is the number of violations that a known upstream issue explains. knownIssue
	// is the issue that explains the first such violation.
	knownViolations int
	knownIssue      *KnownIssue
	// doubtful is the number of violations that prove nothing, because the machine stalled shortly
	// before. During a stall, it gave the processes no CPU time for lag (1 s) or longer. stalled is
	// the duration of the longest such stall.
	doubtful int
	stalled  time.Duration
	// excusesStalls is true if the checker decides itself which stalls (times without CPU) excuse
	// a violation. The field doubtful then stays 0.
	excusesStalls bool
	// upstream is true if the subject is kube-controller-manager, or is built from its source
	// (Settings.Upstream).
	upstream bool
}

// evidenceMax is the maximum number of violations that Result.Evidence describes.
// Result.Violations counts further violations too.
const evidenceMax = 5

// addViolation counts a violation, and stores the evidence for the first evidenceMax (5)
// violations. It calls describe only for these violations, because formatting evidence is slow.
func (f *findings) addViolation(describe func() Evidence) {
	f.violations++
	if len(f.evidence) < evidenceMax {
		e := describe()
		slices.Sort(e.Records)
		e.Records = slices.Compact(e.Records)
		f.evidence = append(f.evidence, e)
	}
}

// addKnownViolation counts a violation that the given known upstream issue explains. The function
// describe returns the evidence, as for addViolation.
func (f *findings) addKnownViolation(issue *KnownIssue, describe func() Evidence) {
	f.knownViolations++
	f.knownIssue = cmp.Or(f.knownIssue, issue)
	f.addViolation(func() Evidence {
		e := describe()
		e.KnownIssue = issue.Slug
		return e
	})
}

// all returns f. The runner calls it to get the findings of any checker that embeds this type.
func (f *findings) all() *findings { return f }

// addContext adds the cached pods and the stalls to the evidence of the violations that the current
// record caused. The parameter before is the number of violations that the checker had found before
// this record.
//
// During a stall, the machine gives the processes no CPU time. If a stall of lag (1 s) or longer
// happened within the last 2 s, these violations count as doubtful. The controllers under test may
// then have received events in another order than the history shows.
func (f *findings) addContext(m *Model, before int) {
	if m.sent == nil || f.violations == before {
		return
	}
	for i := before; i < len(f.evidence); i++ {
		f.evidence[i].Stalled = m.stalls.recent(m.now, machine, m.sent.process.name)
		if state := m.sent.ownerState; state != nil {
			f.evidence[i].Cached = state.describePods()
		}
	}
	if stalled := m.stalls.recent(m.now, machine); stalled >= lag && !f.excusesStalls {
		f.doubtful += f.violations - before
		f.stalled = max(f.stalled, stalled)
	}
}

// Result returns the verdict that follows from the violations:
//
//   - known-upstream: known upstream issues explain every violation, and the program under test is
//     kube-controller-manager or is built from its source.
//   - unknown: shortly before each violation, the machine gave the processes no CPU time for
//     lag (1 s) or longer.
//   - fail: there are violations, and neither case above applies.
//   - pass: there are no violations, but at least one event could have violated the guarantee.
//   - not-exercised: no event could have violated the guarantee.
func (f *findings) Result() Result {
	result := Result{Exercised: f.exercised, Violations: f.violations, Evidence: f.evidence}
	switch {
	case f.violations > 0:
		result.Verdict = Fail
		result.Reason = "the guarantee was violated " + times(f.violations) + "; first violation: " + f.evidence[0].reason()
		known := f.knownViolations == f.violations
		switch {
		case known && f.upstream:
			result.Verdict = KnownUpstream
			result.Reason += "; " + f.knownIssue.String()
		case f.doubtful == f.violations:
			result.Verdict = Unknown
			result.Reason = fmt.Sprintf("the machine stalled for %s shortly before this violation, which therefore proves nothing: %s", seconds(f.stalled), f.evidence[0].reason())
		case known:
			result.Reason += "; " + f.knownIssue.noExcuse()
		}
	case f.exercised == 0:
		result.Verdict, result.Reason = NotExercised, "this run never exercised the guarantee"
	default:
		result.Verdict, result.Reason = Pass, "the guarantee held; the run exercised it "+times(f.exercised)
	}
	return result
}

// times formats a count for a message: "once", "2 times".
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// reason formats the evidence as one line for Result.Reason. The line says what the check found and
// what it expected, and whether processes got no CPU time before.
func (e Evidence) reason() string {
	reason := e.Summary
	if e.Expected != "" {
		reason += "; expected " + e.Expected
	}
	if e.Stalled > 0 {
		reason += fmt.Sprintf("; the subject or gauntlet got no CPU time for %s in the 2 s before this violation", seconds(e.Stalled))
	}
	return reason
}

// podName formats a pod for the evidence of a violation, as "pod namespace/name".
func podName(p *objects.Pod) string { return "pod " + p.Namespace + "/" + p.Name }

// rangeText formats a range of allowed values, such as "2 to 4". For a range of one value, the
// text is that value.
func rangeText(low, high int) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// callName formats a request for the evidence of a violation: verb, resource, subresource and
// namespace/name. An example is "update replicasets.apps status default/web-1".
func callName(c *call) string {
	key := c.key
	if c.verb == callCreatePod { // the key of a create ends with the UID of the owner
		key = strings.TrimSuffix(key, string(c.ownerState.uid))
	}
	return strings.Join(strings.Fields(key), " ")
}

// evidenceOf returns evidence about one object, given by the parameter ref. The strings found and
// expected describe what the check found and expected. The time and the sequence number in the
// evidence are those of the current record.
func (m *Model) evidenceOf(ref *history.Ref, found, expected string) Evidence {
	return Evidence{Summary: found, Expected: expected, Object: ref, At: m.now, Records: []int64{m.seq}}
}

// requestRef returns a reference to the object in a request, for the evidence of a violation. The
// reference has the resource, namespace and name, but no UID and no resourceVersion.
func requestRef(r *history.Request) *history.Ref {
	return &history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
}

// seconds formats a duration for the evidence of a violation, rounded to 0.1 s, such as "1.5s".
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// podRef returns the reference of a pod (the parameter p), for the evidence of a violation. It
// returns nil if p is nil.
func podRef(p *objects.Pod) *history.Ref {
	if p == nil {
		return nil
	}
	return &p.Ref
}
