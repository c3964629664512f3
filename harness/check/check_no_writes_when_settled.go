package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// noWritesWhenSettledCheck demands that the controllers under test write nothing after all objects
// have converged. It examines each of their writes after the run has reported convergence.
//
// The verdict is unknown in four cases:
//
//   - The run did not converge.
//   - The run ended less than Settings.Quiet after convergence.
//   - After convergence, another client changed an object, and a controller under test then wrote.
//   - A controller without a contract wrote while it retried a request that the API server refuses.
//
// If a controller has the trait acts-by-time, the check ignores writes of the kinds that this
// controller writes. Time alone may be the reason for such a write.
var noWritesWhenSettledCheck = Check{
	ID:               "no-writes-when-settled",
	Guarantee:        "Once all objects have converged, the controllers write nothing except leases and events.",
	Contract:         "ReplicaSet 14",
	Property:         Liveness,
	Scope:            general,
	ExercisedWhen:    "The run converges, and then lasts for the quiet time of the scenario. At least one controller under test does not have the trait acts-by-time.",
	Ignores:          "A run that does not converge, or that ends before the quiet phase is over. Writes after another client changed an object in the quiet phase. Once in a run: writes from a commit in the grace time that makes an object differ from its converged state, until the run converges again. Writes of kinds that a controller with the trait acts-by-time writes. Without a contract, nothing says when the controller is done. Therefore, if no controller under test has a contract: a write in a quiet phase that is not the last one, because such a write makes the run wait for a new quiet phase; a write after the quiet time, because the run may end then; and each write of a process that still retries another request, one that the API server has refused at least twice in a row.",
	AllowedBehaviors: []string{"events-not-reliable", "truncated-endpoints", "scheduled-writes"},
	New:              newNoWritesWhenSettledChecker,
}

// noWritesWhenSettledChecker reports writes of the controllers under test after the run has
// reported convergence.
//
// For lag (1 s) after convergence, or for half of Settings.Quiet if that is shorter, these
// controllers may still finish their work in progress. A change of a pod in this time, such as its end,
// begins the time again, but only once more. A write that the subject had already decided on may also
// change an object so that it is no longer converged. The run then waits for convergence again, and
// the checker, too, but only once in a run. If another client changes an object later,
// the checker does not report the writes after this change. The verdict is unknown instead.
//
// Without a contract, convergence only means that the controllers seem to be done. A controller may
// still have delayed a reconcile, for example by its rate limiter. After a write, the run then
// waits for another quiet phase, and the checker drops the writes in the earlier one.
//
// The checker ignores updates of truncated Endpoints, because upstream updates them in each sync
// (allowed behavior truncated-endpoints). It also ignores writes of controllers that act by time
// (allowed behavior scheduled-writes).
type noWritesWhenSettledChecker struct {
	findings
	quietTime time.Duration // how long the run must last after convergence (Settings.Quiet)
	grace     time.Duration // how long the subject may finish its work after convergence
	allByTime bool          // true if every controller under test has the trait acts-by-time
	contract  bool          // true if a controller under test has a contract, so that convergence is exactly known

	quiet bool          // true if the run has reported convergence and has not ended
	since time.Duration // when the run reported convergence
	// graceFrom is when the grace time began: when the run reported convergence, or when a pod last
	// changed within the grace time.
	graceFrom time.Duration
	// reconverges is true if a write in the grace time made an object differ from its converged state.
	reconverges bool
	changed     *history.Ref // an object that another client changed after convergence; nil if there is none
	reacted     bool         // true if the subject wrote after that change

	// refusals counts the refused requests of each process. It is empty if a controller under test
	// has a contract.
	refusals refusals
	// retried is a refused request that a process was retrying when the process wrote something
	// else. It is nil if there is none.
	retried *history.Request
}

func newNoWritesWhenSettledChecker(s Settings) Checker {
	return &noWritesWhenSettledChecker{
		quietTime: s.Quiet,
		grace:     min(lag, s.Quiet/2),
		refusals:  refusals{writes: inFlightWrites{}, inARow: map[requestOf]int{}},
		contract:  s.hasContract(),
		allByTime: !slices.ContainsFunc(s.Controllers, func(c kube.Controller) bool { return !c.Has(kube.ActsByTime) }),
	}
}

func (checker *noWritesWhenSettledChecker) Observe(m *Model, r *history.Record) {
	if !checker.contract {
		checker.refusals.observe(r)
	}
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseQuiet:
		checker.quiet, checker.since, checker.graceFrom = true, m.now, m.now
		// The run may report convergence a second time. The earlier report then no longer
		// counts.
		checker.changed, checker.reacted, checker.retried = nil, false, nil
		if !checker.contract {
			checker.findings = findings{exercised: checker.exercised}
		}
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		if checker.quiet && m.now-checker.since >= checker.quietTime-tolerance {
			checker.exercised++
		}
		checker.quiet = false
	case !checker.contract && checker.quiet && m.now-checker.since > checker.quietTime: // the run decided before that the subject was quiet
	case !checker.quiet:
	case m.now-checker.graceFrom-m.stalls.since(checker.graceFrom, machine, m.processOf(r)) <= checker.grace:
		checker.observeGrace(m, r.Commit)
	case r.Commit != nil && checker.refusals.writes.to(&r.Commit.Object.Ref): // the commit of a write of the subject
	case r.Commit != nil && m.committed.anyChanged() && checker.violations == 0 && checker.changed == nil:
		ref := r.Commit.Object.Ref
		checker.changed = &ref
	case r.Request != nil && r.Request.IsWrite() && truncated(m, r.Request): // allowed behavior truncated-endpoints
	case r.Request != nil && r.Request.IsWrite() && m.tested.writesByTime(r.Request.Resource): // allowed behavior scheduled-writes
	case r.Request != nil && r.Request.IsWrite() && checker.changed != nil:
		checker.reacted = true
	case r.Request != nil && r.Request.IsWrite():
		if retried := checker.refusals.retries(r.Request); retried != nil {
			checker.retried = retried // the controller starts from the beginning in each retry
		} else {
			checker.report(m, r.Request)
		}
	}
}

// observeGrace examines a commit in the grace time. The subject may still have to react to it.
func (checker *noWritesWhenSettledChecker) observeGrace(m *Model, c *history.Commit) {
	switch {
	case c == nil || c.Type == history.Added:
	case c.Object.Resource == objects.PodResource:
		if m.now-checker.since <= checker.grace {
			checker.graceFrom = m.now
		}
	case !checker.reconverges && m.committed.differs(c.Object.UID, m.start.Time.Add(m.now)):
		checker.reconverges, checker.quiet = true, false
	}
}

// truncated reports whether a write updates Endpoints whose committed state is truncated, that
// is, lists only 1000 of the addresses.
func truncated(m *Model, r *history.Request) bool {
	if r.Resource != objects.EndpointsResource || r.Verb != "update" {
		return false
	}
	e := m.committed.endpointsNamed(objectName{objects.ServiceResource, r.Namespace, r.Name})
	return e != nil && e.OverCapacity != ""
}

// report reports that a controller under test wrote after convergence.
func (checker *noWritesWhenSettledChecker) report(m *Model, r *history.Request) {
	ref := requestRef(r)
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %s %s %v after convergence", r.Subject, r.Verb, ref, (m.now - checker.since).Round(time.Millisecond)),
			Expected: "no writes except of leases and events",
			Object:   ref,
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}

// Result returns the verdict of the check.
//
//   - not-exercised: every controller under test acts by time.
//   - fail: the subject wrote after convergence.
//   - unknown: the run did not last long enough after convergence, or the subject reacted to a
//     change of another client, or it retried a refused request.
//   - pass: in all other cases.
func (checker *noWritesWhenSettledChecker) Result() Result {
	result := checker.findings.Result()
	switch {
	case checker.allByTime:
		result.Verdict, result.Reason = NotExercised, "every controller under test has the trait acts-by-time: it may write because time has passed"
	case result.Verdict == Fail:
	case checker.exercised == 0:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("the run did not converge, or ended less than %v (settle.quiet) after convergence", checker.quietTime)
	case checker.reacted:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("%s changed after convergence, and the subject reacted to the change", checker.changed)
	case checker.retried != nil:
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("%s wrote after convergence while it retried %s, which the API server refuses; the write may be part of the retry", checker.retried.Subject, describeRequest(checker.retried))
	}
	return result
}

// neverConverged reports whether the run never converged, or ended too soon afterwards.
//
// The verdict is then unknown. If a known upstream issue prevented convergence, the runner
// changes this verdict to not-exercised.
func (checker *noWritesWhenSettledChecker) neverConverged() bool { return checker.exercised == 0 }
