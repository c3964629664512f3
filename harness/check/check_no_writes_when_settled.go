package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// noWritesWhenSettledCheck examines each write after the run has reported convergence.
//
// Its verdict is unknown if the run did not converge, or if it ended less than Settings.Quiet
// after convergence. It is also unknown if another client changed an object after convergence
// and the subject then wrote. The check ignores writes of kinds that a controller with
// the trait acts-by-time writes, because time alone may be the reason for them.
var noWritesWhenSettledCheck = Check{
	ID:               "no-writes-when-settled",
	Guarantee:        "Once all objects have converged, the controllers write nothing except leases and events.",
	Contract:         "ReplicaSet 14",
	Property:         Liveness,
	Scope:            general,
	ExercisedWhen:    "The run converges, and then lasts for the quiet time of the scenario. At least one controller under test does not have the trait acts-by-time.",
	Ignores:          "A run that does not converge, or that ends before the quiet phase is over. Writes after another client changed an object in the quiet phase. Writes of kinds that a controller with the trait acts-by-time writes.",
	AllowedBehaviors: []string{"events-not-reliable", "truncated-endpoints", "scheduled-writes"},
	New:              newNoWritesWhenSettledChecker,
}

// noWritesWhenSettledChecker reports writes of the subject after the run has reported
// convergence.
//
// The subject may finish its work in progress for the constant lag (1 s), or for half of
// Settings.Quiet if that is shorter. If another client then changes an object, the checker
// does not report the writes that follow, and the verdict is unknown. The checker also ignores
// updates of truncated Endpoints, because upstream updates them in each sync (allowed behavior
// truncated-endpoints), and writes of controllers that act by time (allowed behavior
// scheduled-writes).
type noWritesWhenSettledChecker struct {
	findings
	quietTime time.Duration // how long the run must be observed after convergence
	grace     time.Duration // how long the subject may finish its work after convergence
	allByTime bool          // every controller under test acts by time

	quiet   bool          // the run has reported convergence and has not ended
	since   time.Duration // when the run reported convergence
	changed *history.Ref  // the object that changed before the subject wrote
	reacted bool          // the subject wrote after that change
}

func newNoWritesWhenSettledChecker(s Settings) Checker {
	return &noWritesWhenSettledChecker{
		quietTime: s.Quiet,
		grace:     min(lag, s.Quiet/2),
		allByTime: !slices.ContainsFunc(s.Controllers, func(c kube.Controller) bool { return !c.Has(kube.ActsByTime) }),
	}
}

func (checker *noWritesWhenSettledChecker) Observe(m *Model, r *history.Record) {
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		checker.quiet, checker.since = true, m.now
		// The run may report convergence a second time. The earlier report then no longer
		// counts.
		checker.changed, checker.reacted = nil, false
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		if checker.quiet && m.now-checker.since >= checker.quietTime-tolerance {
			checker.exercised++
		}
		checker.quiet = false
	case !checker.quiet || m.now-checker.since-m.stalls.since(checker.since, machine, m.processOf(r)) <= checker.grace:
	case r.Commit != nil && m.committed.anyChanged() && checker.violations == 0 && checker.changed == nil:
		ref := r.Commit.Object.Ref
		checker.changed = &ref
	case r.Request != nil && r.Request.IsWrite() && truncated(m, r.Request): // allowed behavior truncated-endpoints
	case r.Request != nil && r.Request.IsWrite() && m.tested.writesByTime(r.Request.Resource): // allowed behavior scheduled-writes
	case r.Request != nil && r.Request.IsWrite() && checker.changed != nil:
		checker.reacted = true
	case r.Request != nil && r.Request.IsWrite():
		checker.report(m, r.Request)
	}
}

// truncated reports whether a write updates Endpoints that are truncated in the committed
// state.
func truncated(m *Model, r *history.Request) bool {
	if r.Resource != objects.EndpointsResource || r.Verb != "update" {
		return false
	}
	e := m.committed.endpointsNamed(objectName{objects.ServiceResource, r.Namespace, r.Name})
	return e != nil && e.OverCapacity != ""
}

// report reports a write after convergence.
func (checker *noWritesWhenSettledChecker) report(m *Model, r *history.Request) {
	ref := requestRef(r)
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %s %s %v after convergence", r.Subject, r.Verb, ref, (m.now - checker.since).Round(time.Millisecond)),
			Expected: "no writes except leases and events",
			Object:   ref,
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}

// Result returns fail if the subject wrote after convergence. Otherwise it returns unknown
// if the run was not observed for long enough, or if the subject reacted to a change.
func (checker *noWritesWhenSettledChecker) Result() Result {
	result := checker.findings.Result()
	switch {
	case checker.allByTime:
		result.Verdict, result.Reason = NotExercised, "every controller under test has the trait acts-by-time: it may write because time has passed"
	case result.Verdict == Fail:
	case checker.exercised == 0:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("the run did not converge, or it ended less than %v after convergence", checker.quietTime)
	case checker.reacted:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("%s changed after convergence, and the subject reacted to the change", checker.changed)
	}
	return result
}

// neverConverged reports whether the run was not observed in the converged state for long
// enough.
//
// The verdict is then unknown. If a known upstream issue prevented convergence, the runner
// changes this verdict to not-exercised.
func (checker *noWritesWhenSettledChecker) neverConverged() bool { return checker.exercised == 0 }
