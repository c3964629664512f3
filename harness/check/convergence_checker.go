package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// convergenceChecker checks that objects of one kind converge after the faults are healed,
// and stay converged.
//
// An object has converged when the subject has nothing left to do for it. The checker
// counts pending items only at two times: when the run reports convergence, and at the end.
// If nothing is pending for an object at such a time, the object converged at its last
// change or earlier.
type convergenceChecker struct {
	// convergingKind describes the kind of object that this checker covers.
	convergingKind
	within   time.Duration
	upstream bool // the subject is upstream's own controllers

	settling      bool
	settlingSince time.Duration // start of the settle phase
	// lastChange is the time of the last change of any object of the kind.
	lastChange recordTime
	// convergedAt is the last change before the run reported convergence. foundConverged is
	// true if nothing was pending when the run reported it.
	convergedAt    recordTime
	foundConverged bool

	result Result
}

// recordTime is the time and the sequence number of a record.
type recordTime struct {
	at  time.Duration
	seq int64
}

// convergingKind describes one kind of object to a convergenceChecker.
type convergingKind struct {
	// noneReason is the reason for the verdict not-exercised if no object of the kind exists.
	noneReason string
	// changed reports whether the current record may have changed an object of the kind.
	changed func(committed *objectSet) bool
	// all returns the UIDs of the objects in a namespace, ordered by name.
	all func(m *Model, namespace string) []types.UID
	// pending returns the reference of an object and the items that are pending for it.
	pending func(m *Model, uid types.UID) (*history.Ref, []pending)
	// observe updates the state that knownIssue needs. The checker calls observe for each
	// record. observe may be nil.
	observe func(m *Model, r *history.Record)
	// knownIssue returns the known upstream issue that explains all pending items of an
	// object, or nil if there is none. The field itself may be nil.
	knownIssue func(m *Model, uid types.UID) *KnownIssue
}

// tolerance is the maximum difference between the clock of the run and the timestamps of
// the history.
const tolerance = 500 * time.Millisecond

func newConvergenceChecker(s Settings, kind convergingKind) *convergenceChecker {
	return &convergenceChecker{
		convergingKind: kind,
		within:         s.Within,
		upstream:       s.Upstream,
		result:         Result{Verdict: Unknown, Reason: "the run ended before its settle phase"},
	}
}

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

// countPending counts the pending items of all objects. If each pending object has a known
// upstream issue, it returns the issue of the first one. Otherwise it returns nil as the
// issue.
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

func (checker *convergenceChecker) explain(m *Model, uid types.UID) *KnownIssue {
	if checker.knownIssue == nil {
		return nil
	}
	return checker.knownIssue(m, uid)
}

func (checker *convergenceChecker) conclude(m *Model) Result {
	result, known := checker.countPending(m)
	converged := checker.lastChange
	if checker.foundConverged {
		converged = checker.convergedAt
	}
	waited, took := m.now-checker.settlingSince, converged.at-checker.settlingSince
	switch {
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
	case took > checker.within+tolerance:
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

func (checker *convergenceChecker) Result() Result { return checker.result }
