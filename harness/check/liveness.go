package check

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// convergedJudge: within the bound after faults are healed, nothing is pending
// that is the subject's to do, and so it stays.
type convergedJudge struct {
	within time.Duration

	settling bool
	healed   time.Duration // when settling began
	// open is the owners about which something is pending; closed, since when
	// there are none.
	open   map[types.UID]bool
	closed time.Duration
	// reached is when the run found that all had converged; quiet, that it did.
	reached time.Duration
	quiet   bool

	result Result
}

// tolerance is what the run's clock and the history's may differ by at a bound.
const tolerance = 500 * time.Millisecond

func newConverged(s Setting) Judge {
	return &convergedJudge{
		within: s.Within,
		open:   map[types.UID]bool{},
		result: Result{Verdict: Unknown, Reason: "the run never came to settle"},
	}
}

func (j *convergedJudge) Observe(m *Model, r *history.Record) {
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseSettle:
		j.settling, j.healed, j.closed = true, m.at, m.at
		for uid := range m.truth.owners {
			j.review(m, uid)
		}
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		j.quiet, j.reached = len(j.open) == 0, j.closed
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd && j.settling:
		for uid := range m.truth.owners { // what time alone has changed
			j.review(m, uid)
		}
		j.result = j.judge(m)
	case j.settling && r.Truth != nil:
		for uid := range m.truth.touched {
			j.review(m, uid)
		}
	}
}

// review looks again whether something about an owner is pending.
func (j *convergedJudge) review(m *Model, uid types.UID) {
	before := len(j.open)
	delete(j.open, uid)
	if len(j.pending(m, m.truth.owners[uid])) > 0 {
		j.open[uid] = true
	} else if before > 0 && len(j.open) == 0 {
		j.closed = m.at
	}
}

// pending says what the subject still has to do about an owner.
func (j *convergedJudge) pending(m *Model, o *owner) []string {
	if o == nil || (m.start.Namespace != "" && o.Namespace != m.start.Namespace) {
		return nil
	}
	var lines []string
	for _, p := range m.truth.pending(o, m.start.Time.Add(m.at)) {
		if !p.awaited {
			lines = append(lines, p.text)
		}
	}
	return lines
}

func (j *convergedJudge) judge(m *Model) Result {
	var result Result
	for _, o := range m.truth.ownersIn(m.start.Namespace) {
		result.Tested++
		for _, line := range j.pending(m, o) {
			result.Violations++
			if len(result.Evidence) < evidenceMax {
				result.Evidence = append(result.Evidence, Evidence{
					Summary: line, Expected: fmt.Sprintf("so within %v", j.within), Object: &o.Ref, At: m.at, Records: []int64{m.seq},
				})
			}
		}
	}
	waited, took := m.at-j.healed, j.closed-j.healed
	if j.quiet {
		took = j.reached - j.healed
	}
	switch {
	case result.Violations > 0 && !j.quiet && waited < j.within-tolerance:
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("the run ended %v after the healing, before its bound of %v", waited, j.within)}
	case result.Violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("%v after the healing, %s", waited.Round(time.Millisecond), result.Evidence[0].Summary)
	case result.Tested == 0:
		result.Verdict, result.Reason = Idle, "there was nothing to converge"
	case took > j.within+tolerance:
		late := Evidence{
			Summary:  fmt.Sprintf("converged %v after the healing", took.Round(time.Millisecond)),
			Expected: fmt.Sprintf("within %v", j.within),
			At:       j.healed + took,
		}
		result.Verdict, result.Reason = Fail, late.Summary+", expected "+late.Expected
		result.Violations, result.Evidence = 1, []Evidence{late}
	default:
		result.Verdict, result.Reason = Pass, fmt.Sprintf("converged %v after the healing", took.Round(time.Millisecond))
	}
	return result
}

func (j *convergedJudge) Result() Result { return j.result }

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

func newQuiet(s Setting) Judge {
	return &quietJudge{expected: s.Quiet, grace: min(lag, s.Quiet/2)}
}

func (j *quietJudge) Observe(m *Model, r *history.Record) {
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		j.quiet, j.since = true, m.at
		j.stirred, j.reacted = nil, false // what went before was given up
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		if j.quiet && m.at-j.since >= j.expected-tolerance {
			j.tested++
		}
		j.quiet = false
	case !j.quiet || m.at-j.since <= j.grace:
	case r.Truth != nil && len(m.truth.touched) > 0 && j.violations == 0 && j.stirred == nil:
		ref := r.Truth.Object.Ref
		j.stirred = &ref
	case r.Request != nil && IsWrite(r.Request) && j.stirred != nil:
		j.reacted = true
	case r.Request != nil && IsWrite(r.Request):
		j.accuse(m, r.Request)
	}
}

func (j *quietJudge) accuse(m *Model, r *history.Request) {
	ref := history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
	j.violate(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %s %s %v after all had converged", r.Subject, r.Verb, ref, (m.at - j.since).Round(time.Millisecond)),
			Expected: "no writes but leases and events",
			Object:   &ref,
			At:       m.at,
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
