package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// convergenceChecker checks that the objects of one kind converge in time after the faults are
// healed. It also checks that they stay converged.
//
// An object has converged when the subject has nothing left to do for it. The checker tests
// this only twice: when the run reports convergence (phase quiet), and when the run ends. If
// all objects have converged at one of these times, their last change marks the time of
// convergence.
type convergenceChecker struct {
	// convergingKind describes the kind of object that this checker checks.
	convergingKind
	within   time.Duration // how long the objects may take to converge, from the beginning of the phase settle
	upstream bool          // Settings.Upstream

	settling      bool          // true after the phase settle has begun
	settlingSince time.Duration // when the phase settle began
	// lastChange is the last record of the phases settle and quiet that changed an object of
	// the kind. Before such a record, it is the beginning of the phase settle.
	lastChange recordTime
	// foundConverged is true if all objects had converged when the run reported convergence.
	// convergedAt is the value of lastChange at that time.
	foundConverged bool
	convergedAt    recordTime

	result Result // unknown until the phase end begins
}

// recordTime is the time and the sequence number of a record.
type recordTime struct {
	at  time.Duration
	seq int64
}

// convergingKind contains what a convergenceChecker must know about one kind of object.
type convergingKind struct {
	// noneReason is the reason of the verdict not-exercised, for a run without objects of the
	// kind.
	noneReason string
	// changed reports whether the current record may have changed an object of the kind.
	changed func(committed *objectSet) bool
	// all returns the UIDs of the objects of the kind in a namespace, sorted by name.
	all func(m *Model, namespace string) []types.UID
	// pending returns the reference of an object, and how the object differs from its
	// converged state.
	pending func(m *Model, uid types.UID) (*history.Ref, []pending)
	// observe updates the state that knownIssue reads, such as counts of failed calls. The
	// checker calls it for each record. It may be nil.
	observe func(m *Model, r *history.Record)
	// knownIssue returns the known upstream issue that explains why an object has not
	// converged, or nil if no issue explains it. The function itself may be nil.
	knownIssue func(m *Model, uid types.UID) *KnownIssue
}

// tolerance is how much a duration in the records may differ from the duration that the run
// measured.
//
// The run waits for settle.within by its own clock, so the times of the records may show a
// longer or shorter wait.
const tolerance = 500 * time.Millisecond

// newConvergenceChecker returns a checker for objects of the given kind.
func newConvergenceChecker(s Settings, kind convergingKind) *convergenceChecker {
	return &convergenceChecker{
		convergingKind: kind,
		within:         s.Within,
		upstream:       s.Upstream,
		result:         Result{Verdict: Unknown, Reason: "the run ended before its settle phase"},
	}
}

// Observe records when phases begin and when an object of the kind changes. At the beginning
// of the phases quiet and end, it tests whether all objects have converged.
func (checker *convergenceChecker) Observe(m *Model, r *history.Record) {
	if checker.observe != nil {
		checker.observe(m, r)
	}
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

// countPending counts the differences of all objects from their converged state. It leaves out
// those that the subject cannot resolve itself.
//
// The result known is a known upstream issue if such an issue explains each object that has not
// converged. If there are several issues, it is that of the first object.
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

// explain returns the known upstream issue that explains why an object has not converged, or
// nil.
func (checker *convergenceChecker) explain(m *Model, uid types.UID) *KnownIssue {
	if checker.knownIssue == nil {
		return nil
	}
	return checker.knownIssue(m, uid)
}

// conclude tests at the end of the run whether all objects have converged, and returns the
// verdict.
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
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("the machine stalled for %s of the %s after the faults were healed, so this proves nothing: %s", seconds(stalled), seconds(waited), result.Evidence[0].Summary)}
	case result.Violations > 0 && !checker.foundConverged && waited < checker.within-tolerance:
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("the run ended %v after the faults were healed, before the bound of %v", waited, checker.within)}
	case result.Violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("not converged %v after the faults were healed: %s", waited.Round(time.Millisecond), result.Evidence[0].Summary)
		if known != nil {
			result.Reason += "; " + known.String()
		}
		if known != nil && checker.upstream {
			result.Verdict = KnownUpstream
		}
	case result.Exercised == 0:
		result.Verdict, result.Reason = NotExercised, checker.noneReason
	case took-stalled > checker.within+tolerance:
		late := Evidence{
			Summary:  fmt.Sprintf("converged %v after the faults were healed", took.Round(time.Millisecond)),
			Expected: fmt.Sprintf("convergence within %v", checker.within),
			At:       converged.at,
			Records:  []int64{converged.seq},
		}
		result.Verdict, result.Reason = Fail, late.reason()
		result.Violations, result.Evidence = 1, []Evidence{late}
	default:
		result.Verdict, result.Reason = Pass, fmt.Sprintf("converged %v after the faults were healed", took.Round(time.Millisecond))
	}
	return result
}

// Result returns the verdict. It is unknown if the history has no record of the last phase
// (PhaseEnd).
func (checker *convergenceChecker) Result() Result { return checker.result }
