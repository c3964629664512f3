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

// findings collects the violations that one checker reports. Most checkers embed this type.
type findings struct {
	exercised  int
	violations int
	evidence   []Evidence
	// knownViolations counts the violations that match a known upstream issue. knownIssue is
	// the first such issue. upstream is true if the subject is the set of controllers of
	// Kubernetes itself.
	knownViolations int
	knownIssue      *KnownIssue
	upstream        bool
}

// evidenceMax is the maximum number of violations for which a result contains evidence. All
// violations are counted.
const evidenceMax = 5

// addViolation counts a violation. It calls the function describe only for the first
// evidenceMax violations, because a description is expensive.
func (f *findings) addViolation(describe func() Evidence) {
	f.violations++
	if len(f.evidence) < evidenceMax {
		e := describe()
		slices.Sort(e.Records)
		e.Records = slices.Compact(e.Records)
		f.evidence = append(f.evidence, e)
	}
}

// addKnownViolation counts a violation that matches a known upstream issue.
func (f *findings) addKnownViolation(issue *KnownIssue, describe func() Evidence) {
	f.knownViolations++
	f.knownIssue = cmp.Or(f.knownIssue, issue)
	f.addViolation(func() Evidence {
		e := describe()
		e.KnownIssue = issue.Slug
		return e
	})
}

// Result returns the verdict that follows from the findings.
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
		}
	case f.exercised == 0:
		result.Verdict, result.Reason = NotExercised, "this run never exercised the guarantee"
	default:
		result.Verdict, result.Reason = Pass, "held; exercised "+times(f.exercised)
	}
	return result
}

// times formats a count for the reason of a verdict: "once", or for example "3 times".
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// reason returns one line with the observed and the expected behavior, for Result.Reason.
func (e Evidence) reason() string {
	if e.Expected == "" {
		return e.Summary
	}
	return e.Summary + "; expected " + e.Expected
}

// podName formats a pod as "pod namespace/name".
func podName(p *objects.Pod) string { return "pod " + p.Namespace + "/" + p.Name }

// rangeText formats the lowest and the highest allowed value of a number.
func rangeText(low, high int) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// callName formats a call as verb, resource, subresource and object name.
func callName(c *call) string {
	key := c.key
	if c.verb == callCreatePod { // the key of a create ends with the UID of the owner
		key = strings.TrimSuffix(key, string(c.ownerState.uid))
	}
	return strings.Join(strings.Fields(key), " ")
}

// evidenceOf returns evidence that refers to the current record and an object.
func (m *Model) evidenceOf(ref *history.Ref, found, expected string) Evidence {
	return Evidence{Summary: found, Expected: expected, Object: ref, At: m.now, Records: []int64{m.seq}}
}

// requestRef returns the reference of the object that a request is for.
func requestRef(r *history.Request) *history.Ref {
	return &history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
}

// seconds formats a duration for evidence.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// podRef returns the reference of a pod for evidence, or nil if the pod is nil.
func podRef(p *objects.Pod) *history.Ref {
	if p == nil {
		return nil
	}
	return &p.Ref
}
