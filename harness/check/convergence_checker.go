package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// convergenceChecker checks that all objects of one kind converge in time after the faults are
// healed, and stay converged.
//
// An object has converged when the controllers under test have nothing left to do for it. The
// checker tests the objects when the run reports convergence (PhaseQuiet), and when the run ends
// (PhaseEnd). If all objects have converged at one of these times, the time of convergence is that
// of the last change.
type convergenceChecker struct {
	// convergingKind describes the kind of object whose convergence is checked, such as Deployment.
	convergingKind
	within   time.Duration // how long the objects may take to converge after all faults were healed
	upstream bool          // true if the subject is kube-controller-manager, or is built from its source

	settling      bool          // true after all faults were healed and the settle phase began
	settlingSince time.Duration // when all faults were healed and the settle phase began
	// lastChange is when an object of the kind last changed after the faults were healed. Without
	// such a change, it is the time when the last fault was healed (the settle phase began).
	lastChange recordTime
	// foundConverged is true if all objects had converged when the run reported convergence
	// (PhaseQuiet). convergedAt is the value of lastChange at that time.
	foundConverged bool
	convergedAt    recordTime

	result Result // the verdict; unknown until the last phase (PhaseEnd) begins
}

// recordTime is the time and the sequence number of a record, such as the record of the last
// change.
type recordTime struct {
	at  time.Duration
	seq int64
}

// tolerance is how much a duration computed from records may differ from the duration that the
// run waited.
//
// The run waits for settle.within by its own clock. The times of the records may show a slightly
// longer or shorter wait.
const tolerance = 500 * time.Millisecond

// newConvergenceChecker returns a checker for the objects of one kind. The verdict is unknown
// until the run reaches its last phase (end).
func newConvergenceChecker(s Settings, kind convergingKind) *convergenceChecker {
	return &convergenceChecker{
		convergingKind: kind,
		within:         s.Within,
		upstream:       s.Upstream,
		result:         Result{Verdict: Unknown, Reason: "the run ended before all faults were healed (phase settle)"},
	}
}

// Observe reads the next record of the history. When the run reports convergence (PhaseQuiet) or
// ends (PhaseEnd), Observe tests whether all objects have converged.
func (checker *convergenceChecker) Observe(m *Model, r *history.Record) {
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseSettle:
		checker.settling, checker.settlingSince, checker.lastChange = true, m.now, recordTime{m.now, m.seq}
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		result, _ := checker.countPending(m)
		checker.foundConverged, checker.convergedAt = result.Violations == 0, checker.lastChange
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd && checker.settling:
		checker.result = checker.conclude(m)
	case checker.settling && r.Commit != nil && checker.changed(m.committed):
		checker.lastChange = recordTime{m.now, m.seq}
	}
}

// countPending counts the differences between the objects of the kind and their converged state. It
// ignores differences that a controller cannot resolve itself, such as a pod that is not ready.
//
// The second result (known) is nil unless known upstream issues explain each object that has not
// converged. If there are several such issues, it is the issue of the first object.
func (checker *convergenceChecker) countPending(m *Model) (result Result, known *KnownIssue) {
	unexplained := false
	for _, uid := range checker.all(m, m.start.Namespace) {
		result.Exercised++
		ref, all := checker.pending(m, uid)
		all = slices.DeleteFunc(all, func(p pending) bool { return p.awaited })
		if len(all) == 0 {
			continue
		}
		issue, slug := checker.explain(m, uid), ""
		if issue != nil {
			known, slug = cmp.Or(known, issue), issue.Slug
		}
		unexplained = unexplained || issue == nil
		for _, p := range all {
			result.Violations++
			if len(result.Evidence) < evidenceMax {
				result.Evidence = append(result.Evidence, Evidence{
					Summary: p.text, Expected: fmt.Sprintf("convergence within %v", checker.within), Object: ref, At: m.now, Records: []int64{m.seq},
					KnownIssue: slug,
				})
			}
		}
	}
	if unexplained {
		known = nil
	}
	return result, known
}

// explain returns the known upstream issue that explains why an object has not converged. It
// returns nil if no issue explains this.
func (checker *convergenceChecker) explain(m *Model, uid types.UID) *KnownIssue {
	if checker.knownIssue == nil {
		return nil
	}
	return checker.knownIssue(m, uid)
}

// conclude computes the verdict when the run ends. The verdict is fail if an object has not
// converged, or converged too late. The verdict is unknown if the objects had too little time.
// Either the run ended early, or the machine gave the processes no CPU time.
func (checker *convergenceChecker) conclude(m *Model) Result {
	result, known := checker.countPending(m)
	converged := checker.lastChange
	if checker.foundConverged {
		converged = checker.convergedAt
	}
	waited, took := m.now-checker.settlingSince, converged.at-checker.settlingSince
	stalled := m.stalls.longest(checker.settlingSince)
	switch {
	case result.Violations > 0 && !checker.foundConverged && stalled > 0 && waited-stalled < checker.within-tolerance:
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("the machine stalled for %s of the %s after the faults were healed, so the objects had too little time to converge: %s", seconds(stalled), seconds(waited), result.Evidence[0].Summary)}
	case result.Violations > 0 && !checker.foundConverged && waited < checker.within-tolerance:
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("the run ended only %v after the faults were healed, but the objects may take %v to converge (settle.within)", waited, checker.within)}
	case result.Violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("the objects had not converged %v after the faults were healed: %s", waited.Round(time.Millisecond), result.Evidence[0].Summary)
		switch {
		case known != nil && checker.upstream:
			result.Verdict = KnownUpstream
			result.Reason += "; " + known.String()
		case known != nil:
			result.Reason += "; " + known.noExcuse()
		}
	case result.Exercised == 0:
		result.Verdict, result.Reason = NotExercised, checker.noneReason
	case took-stalled > checker.within+tolerance:
		late := Evidence{
			Summary:  fmt.Sprintf("the objects converged %v after the faults were healed", took.Round(time.Millisecond)),
			Expected: fmt.Sprintf("convergence within %v", checker.within),
			At:       converged.at,
			Records:  []int64{converged.seq},
		}
		result.Verdict, result.Reason = Fail, late.reason()
		result.Violations, result.Evidence = 1, []Evidence{late}
	default:
		result.Verdict, result.Reason = Pass, fmt.Sprintf("the objects converged %v after the faults were healed", took.Round(time.Millisecond))
	}
	return result
}

// Result returns the verdict that Observe computed when the run ended (PhaseEnd began). If the
// history has no such phase, the verdict is unknown.
func (checker *convergenceChecker) Result() Result { return checker.result }
