package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// noWritesWhenSettledCheck is the row of no-writes-when-settled in All.
var noWritesWhenSettledCheck = Check{
	ID:               "no-writes-when-settled",
	Guarantee:        "Once converged, the subject writes nothing but leases and events.",
	Contract:         "ReplicaSet 14",
	Property:         Liveness,
	AllowedBehaviors: []string{"events-not-reliable", "truncated-endpoints"},
	New:              newNoWritesWhenSettledChecker,
}

// noWritesWhenSettledChecker: once the run has found that all had converged, the subject writes
// nothing. It is granted the lag, within the first half of that time, to finish
// what it was doing. When the cluster itself goes on to change, it may react.
type noWritesWhenSettledChecker struct {
	findings
	quietTime time.Duration
	grace     time.Duration

	quiet   bool
	since   time.Duration
	changed *history.Ref // what changed before the subject wrote
	reacted bool         // the subject wrote after that
}

func newNoWritesWhenSettledChecker(s Settings) Checker {
	return &noWritesWhenSettledChecker{quietTime: s.Quiet, grace: min(lag, s.Quiet/2)}
}

func (checker *noWritesWhenSettledChecker) Observe(m *Model, r *history.Record) {
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		checker.quiet, checker.since = true, m.now
		checker.changed, checker.reacted = nil, false // what went before was given up
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		if checker.quiet && m.now-checker.since >= checker.quietTime-tolerance {
			checker.exercised++
		}
		checker.quiet = false
	case !checker.quiet || m.now-checker.since <= checker.grace:
	case r.Commit != nil && len(m.committed.changedObjects)+len(m.committed.changedServices) > 0 && checker.violations == 0 && checker.changed == nil:
		ref := r.Commit.Object.Ref
		checker.changed = &ref
	case r.Request != nil && r.Request.IsWrite() && truncated(m, r.Request): // trap 32
	case r.Request != nil && r.Request.IsWrite() && checker.changed != nil:
		checker.reacted = true
	case r.Request != nil && r.Request.IsWrite():
		checker.report(m, r.Request)
	}
}

// truncated reports whether a write is of Endpoints that hold only some of their
// addresses, which upstream writes anew with every look at them.
func truncated(m *Model, r *history.Request) bool {
	if r.Resource != endpointsResource || r.Verb != "update" {
		return false
	}
	e := m.committed.endpointsNamed(objectName{serviceResource, r.Namespace, r.Name})
	return e != nil && e.overCapacity != ""
}

func (checker *noWritesWhenSettledChecker) report(m *Model, r *history.Request) {
	ref := history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %s %s %v after all had converged", r.Subject, r.Verb, ref, (m.now - checker.since).Round(time.Millisecond)),
			Expected: "no writes but leases and events",
			Object:   &ref,
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}

func (checker *noWritesWhenSettledChecker) Result() Result {
	result := checker.findings.Result()
	switch {
	case result.Verdict == Fail:
	case checker.exercised == 0:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("the run was not watched for %v after it converged", checker.quietTime)
	case checker.reacted:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("%s changed when all should have been quiet, and the subject reacted", checker.changed)
	}
	return result
}

// neverConverged reports that the run never converged, which is another check's to judge.
func (checker *noWritesWhenSettledChecker) neverConverged() bool { return checker.exercised == 0 }
