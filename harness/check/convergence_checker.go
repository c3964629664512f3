package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// convergenceChecker judges that within the bound after faults are healed, nothing is
// pending that is the subject's to do about some kind of object, and that it
// stays so.
//
// It looks at an object only when the run says that all has converged, and at
// the end: what is in order then has been so since the object was last touched.
type convergenceChecker struct {
	convergingKind
	within   time.Duration
	upstream bool // the subject is upstream's

	settling      bool
	settlingSince time.Duration // when settling began
	// lastChange is when an object of the kind was last touched.
	lastChange recordTime
	// convergedAt is since when all had converged, when the run found that they had;
	// quiet, that it did.
	convergedAt    recordTime
	foundConverged bool

	result Result
}

// recordTime is when something happened, and the record that tells of it.
type recordTime struct {
	at  time.Duration
	seq int64
}

// convergingKind is a kind of object that is to converge.
type convergingKind struct {
	// noneReason says what it means that there are none.
	noneReason string
	// changed reports whether the current record may have changed any.
	changed func(truth *objectSet) bool
	// all returns those in a namespace, in order of names.
	all func(m *Model, namespace string) []types.UID
	// pending says which object it is, and what is pending about it.
	pending func(m *Model, uid types.UID) (*history.Ref, []pending)
	// observe takes in each record, for what weakness is to know; nil if that is nothing.
	observe func(m *Model, r *history.Record)
	// knownIssue is what explains all that is pending about an object, if upstream is
	// known for it; nil if it is not. Without this function it never is.
	knownIssue func(m *Model, uid types.UID) *KnownIssue
}

// tolerance is what the run's clock and the history's may differ by at a bound.
const tolerance = 500 * time.Millisecond

func newConvergenceChecker(s Settings, r convergingKind) *convergenceChecker {
	return &convergenceChecker{
		convergingKind: r,
		within:         s.Within,
		upstream:       s.Upstream,
		result:         Result{Verdict: Unknown, Reason: "the run never came to settle"},
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

// countPending counts what is pending. Known is the weakness that explains the first of
// it, if there is one that explains each.
func (checker *convergenceChecker) countPending(m *Model) (result Result, known *KnownIssue) {
	unexplained := false
	for _, uid := range checker.all(m, m.start.Namespace) {
		result.Exercised++
		ref, all := checker.pending(m, uid)
		all = slices.DeleteFunc(all, func(p pending) bool { return p.awaited })
		if len(all) == 0 {
			continue
		}
		why, slug := checker.explain(m, uid), ""
		if why != nil {
			known, slug = cmp.Or(known, why), why.Slug
		}
		unexplained = unexplained || why == nil
		for _, p := range all {
			result.Violations++
			if len(result.Evidence) < evidenceMax {
				result.Evidence = append(result.Evidence, Evidence{
					Summary: p.text, Expected: fmt.Sprintf("so within %v", checker.within), Object: ref, At: m.now, Records: []int64{m.seq},
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
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("the run ended %v after the healing, before its bound of %v", waited, checker.within)}
	case result.Violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("%v after the healing, %s", waited.Round(time.Millisecond), result.Evidence[0].Summary)
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
			Summary:  fmt.Sprintf("converged %v after the healing", took.Round(time.Millisecond)),
			Expected: fmt.Sprintf("within %v", checker.within),
			At:       converged.at,
			Records:  []int64{converged.seq},
		}
		result.Verdict, result.Reason = Fail, late.Summary+", expected "+late.Expected
		result.Violations, result.Evidence = 1, []Evidence{late}
	default:
		result.Verdict, result.Reason = Pass, fmt.Sprintf("converged %v after the healing", took.Round(time.Millisecond))
	}
	return result
}

func (checker *convergenceChecker) Result() Result { return checker.result }
