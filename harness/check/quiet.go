package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// quietJudge: once the run has found that all had converged, the subject writes
// nothing. It is granted the lag, within the first half of that time, to finish
// what it was doing. When the cluster itself goes on to change, it may react.
type quietJudge struct {
	findings
	expected time.Duration
	grace    time.Duration

	quiet   bool
	since   time.Duration
	stirred *history.Ref // what changed before the subject wrote
	reacted bool         // the subject wrote after that
}

func newQuiet(s Settings) Checker {
	return &quietJudge{expected: s.Quiet, grace: min(lag, s.Quiet/2)}
}

func (j *quietJudge) Observe(m *Model, r *history.Record) {
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		j.quiet, j.since = true, m.now
		j.stirred, j.reacted = nil, false // what went before was given up
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		if j.quiet && m.now-j.since >= j.expected-tolerance {
			j.tested++
		}
		j.quiet = false
	case !j.quiet || m.now-j.since <= j.grace:
	case r.Commit != nil && len(m.truth.touched)+len(m.truth.published) > 0 && j.violations == 0 && j.stirred == nil:
		ref := r.Commit.Object.Ref
		j.stirred = &ref
	case r.Request != nil && r.Request.IsWrite() && truncated(m, r.Request): // trap 32
	case r.Request != nil && r.Request.IsWrite() && j.stirred != nil:
		j.reacted = true
	case r.Request != nil && r.Request.IsWrite():
		j.accuse(m, r.Request)
	}
}

// truncated reports whether a write is of Endpoints that hold only some of their
// addresses, which upstream writes anew with every look at them.
func truncated(m *Model, r *history.Request) bool {
	if r.Resource != endpointsResource || r.Verb != "update" {
		return false
	}
	e := m.truth.endpointsNamed(objectName{serviceResource, r.Namespace, r.Name})
	return e != nil && e.capacity != ""
}

func (j *quietJudge) accuse(m *Model, r *history.Request) {
	ref := history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
	j.violate(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %s %s %v after all had converged", r.Subject, r.Verb, ref, (m.now - j.since).Round(time.Millisecond)),
			Expected: "no writes but leases and events",
			Object:   &ref,
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}

func (j *quietJudge) Result() Result {
	result := j.findings.Result()
	switch {
	case result.Verdict == Fail:
	case j.tested == 0:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("the run was not watched for %v after it converged", j.expected)
	case j.reacted:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("%s changed when all should have been quiet, and the subject reacted", j.stirred)
	}
	return result
}

// unsettled reports that the run never converged, which is another check's to judge.
func (j *quietJudge) unsettled() bool { return j.tested == 0 }
