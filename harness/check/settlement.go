package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// settlement judges that within the bound after faults are healed, nothing is
// pending that is the subject's to do about some kind of object, and that it
// stays so.
//
// It looks at an object only when the run says that all has converged, and at
// the end: what is in order then has been so since the object was last touched.
type settlement struct {
	realm
	within   time.Duration
	upstream bool // the subject is upstream's

	settling bool
	healed   time.Duration // when settling began
	// since is when an object of the realm was last touched.
	since instant
	// reached is since when all had converged, when the run found that they had;
	// quiet, that it did.
	reached instant
	quiet   bool

	result Result
}

// instant is when something happened, and the record that tells of it.
type instant struct {
	at  time.Duration
	seq int64
}

// realm is a kind of object that is to converge.
type realm struct {
	// nothing says what it means that there are none.
	nothing string
	// touched reports whether the current record may have changed any.
	touched func(truth *world) bool
	// all returns those in a namespace, in order of names.
	all func(m *Model, namespace string) []types.UID
	// pending says which object it is, and what is pending about it.
	pending func(m *Model, uid types.UID) (*history.Ref, []pending)
	// watch takes in each record, for what weakness is to know; nil if that is nothing.
	watch func(m *Model, r *history.Record)
	// weakness is what explains all that is pending about an object, if upstream is
	// known for it; nil if it is not. Without this function it never is.
	weakness func(m *Model, uid types.UID) *KnownIssue
}

// tolerance is what the run's clock and the history's may differ by at a bound.
const tolerance = 500 * time.Millisecond

func newSettlement(s Settings, r realm) *settlement {
	return &settlement{
		realm:    r,
		within:   s.Within,
		upstream: s.Upstream,
		result:   Result{Verdict: Unknown, Reason: "the run never came to settle"},
	}
}

func (j *settlement) Observe(m *Model, r *history.Record) {
	if j.watch != nil {
		j.watch(m, r)
	}
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseSettle:
		j.settling, j.healed, j.since = true, m.now, instant{m.now, m.seq}
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		result, _ := j.review(m)
		j.quiet, j.reached = result.Violations == 0, j.since
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd && j.settling:
		j.result = j.judge(m)
	case j.settling && r.Commit != nil && j.touched(m.truth):
		j.since = instant{m.now, m.seq}
	}
}

// review counts what is pending. Known is the weakness that explains the first of
// it, if there is one that explains each.
func (j *settlement) review(m *Model) (result Result, known *KnownIssue) {
	unexplained := false
	for _, uid := range j.all(m, m.start.Namespace) {
		result.Exercised++
		ref, all := j.pending(m, uid)
		all = slices.DeleteFunc(all, func(p pending) bool { return p.awaited })
		if len(all) == 0 {
			continue
		}
		why, trap := j.explain(m, uid), 0
		if why != nil {
			known, trap = cmp.Or(known, why), why.Trap
		}
		unexplained = unexplained || why == nil
		for _, p := range all {
			result.Violations++
			if len(result.Evidence) < evidenceMax {
				result.Evidence = append(result.Evidence, Evidence{
					Summary: p.text, Expected: fmt.Sprintf("so within %v", j.within), Object: ref, At: m.now, Records: []int64{m.seq},
					KnownIssue: trap,
				})
			}
		}
	}
	if unexplained {
		known = nil
	}
	return result, known
}

func (j *settlement) explain(m *Model, uid types.UID) *KnownIssue {
	if j.weakness == nil {
		return nil
	}
	return j.weakness(m, uid)
}

func (j *settlement) judge(m *Model) Result {
	result, known := j.review(m)
	converged := j.since
	if j.quiet {
		converged = j.reached
	}
	waited, took := m.now-j.healed, converged.at-j.healed
	switch {
	case result.Violations > 0 && !j.quiet && waited < j.within-tolerance:
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("the run ended %v after the healing, before its bound of %v", waited, j.within)}
	case result.Violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("%v after the healing, %s", waited.Round(time.Millisecond), result.Evidence[0].Summary)
		if known != nil {
			result.Reason += "; " + known.String()
		}
		if known != nil && j.upstream {
			result.Verdict = KnownUpstream
		}
	case result.Exercised == 0:
		result.Verdict, result.Reason = NotExercised, j.nothing
	case took > j.within+tolerance:
		late := Evidence{
			Summary:  fmt.Sprintf("converged %v after the healing", took.Round(time.Millisecond)),
			Expected: fmt.Sprintf("within %v", j.within),
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

func (j *settlement) Result() Result { return j.result }
