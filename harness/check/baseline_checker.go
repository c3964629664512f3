package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// baselineChecker compares a run with the baseline: what runs of the same scenario without faults
// have in common. It makes the comparison at the end of the run, when the last phase (PhaseEnd)
// begins.
type baselineChecker struct {
	findings
	baseline *baseline.Baseline // the baseline to compare with; nil if none was given for the run
	observer *baseline.Observer // collects what happened in this run, for the comparison
	excludes []string           // names of faults after which a run cannot be compared with the baseline
	excluded string             // the first fault in excludes that fired; empty if none did
	fired    []string           // the names of the faults that fired
	// firstFired is the sequence number of the record of the first fault that fired; 0 if none did.
	firstFired int64
	compare    comparison // finds the differences between the run and the baseline
	// lastOperation is the index of the last workload step that has an operation, such as create.
	// Later steps only await a condition, such as that all pods are ready. The run can still be
	// compared if one of these later steps fails.
	lastOperation int
	// reportsUnmet is true if the checker reports a step whose awaited condition was not met, not even
	// after all faults were healed.
	reportsUnmet bool
}

// comparison compares a run with a baseline, that is, with what runs without faults have in common.
// The parameter fired has the names of the faults that fired. The function returns how many facts
// it compared, such as objects at the end, and the differences.
type comparison func(b *baseline.Baseline, run *baseline.Observer, fired []string) (compared int, differences []baseline.Difference)

// desiredStateFaults lists the faults that change what the cluster should look like, such as an
// edit by a user. A run in which one of them fired cannot be compared with runs without faults.
var desiredStateFaults = []string{"user-edit", "namespace-terminating", "name-taken"}

// newBaselineChecker returns a checker that compares a run with Settings.Baseline, that is, with
// runs without faults. The parameter excludes contains names of faults. If one of these faults
// fired, the checker does not compare the run. The parameter compare is the function that makes the
// comparison at the end of the run.
func newBaselineChecker(s Settings, excludes []string, compare comparison) *baselineChecker {
	return &baselineChecker{baseline: s.Baseline, observer: baseline.NewObserver(), excludes: excludes, compare: compare, lastOperation: s.LastOperation}
}

func (checker *baselineChecker) Observe(m *Model, r *history.Record) {
	if checker.baseline == nil {
		return
	}
	checker.collect(r)
	if r.Phase != nil && r.Phase.Name == history.PhaseEnd && checker.unusable() == "" {
		checker.end(m)
	}
}

// collect adds the next record of the history to what is compared at the end.
func (checker *baselineChecker) collect(r *history.Record) {
	checker.observer.Observe(r)
	if r.Fault == nil || r.Fault.Event != history.FaultFired {
		return
	}
	checker.firstFired = cmp.Or(checker.firstFired, r.Seq)
	if !slices.Contains(checker.fired, r.Fault.Name) {
		checker.fired = append(checker.fired, r.Fault.Name)
	}
	if checker.excluded == "" && slices.Contains(checker.excludes, r.Fault.Name) {
		checker.excluded = r.Fault.Name
	}
}

// end compares the run with the baseline (what runs without faults have in common). It reports
// each difference as a violation.
func (checker *baselineChecker) end(m *Model) {
	if step := checker.unmet(); step != nil {
		checker.exercised++
		summary := checker.observer.FailedStep
		if conditions := checker.observer.Conditions(*step.Step.Awaited); conditions != "" {
			summary += "; conditions: " + conditions
		}
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary:  summary,
				Expected: "the step completes after all faults are healed, as in the runs without faults from which the baseline was learned",
				Object:   step.Step.Awaited, At: step.At, Records: []int64{step.Seq},
			}
		})
		return
	}
	compared, differences := checker.compare(checker.baseline, checker.observer, checker.fired)
	checker.exercised += compared
	for _, difference := range differences {
		checker.addViolation(func() Evidence { return checker.describe(m, difference) })
	}
}

// describe returns the evidence for a difference. If the difference is extra creates or deletes, the
// evidence has the records of the first ones, and says whether a fault had acted before.
func (checker *baselineChecker) describe(m *Model, difference baseline.Difference) Evidence {
	e := Evidence{Summary: difference.Text, Expected: "the same as in the runs without faults from which the baseline was learned", At: m.now, Records: []int64{m.seq}}
	if len(difference.Responses) == 0 {
		return e
	}
	e.At, e.Records = difference.Responses[0].At, nil
	for _, r := range difference.Responses {
		e.Records = append(e.Records, r.Seq)
	}
	if checker.firstFired == 0 || e.Records[0] < checker.firstFired {
		e.Expected += "; no fault had acted yet, so that this may also happen without faults"
	}
	return e
}

// unmet returns the record of the failed step, if the step is a violation. Otherwise it returns nil.
//
// It is a violation if its awaited condition was not met, not even after all faults were healed, and
// operations of the workload are therefore missing. It is none if a fault ended pods, because the step
// may await such a pod, and nobody creates it again.
func (checker *baselineChecker) unmet() *history.Record {
	if !checker.reportsUnmet || podsReplaced(checker.fired) || checker.observer.Unfinished(checker.lastOperation) == "" {
		return nil
	}
	return checker.observer.Unmet()
}

// unusable returns why the run cannot be compared with runs without faults (the baseline), or "" if
// it can.
func (checker *baselineChecker) unusable() string {
	switch {
	case checker.baseline == nil:
		return "no baseline was given for this run; create one with \"gauntlet baseline\" and pass it with --baseline"
	case checker.excluded != "":
		return fmt.Sprintf("the run cannot be compared with the baseline, because the fault %s fired", checker.excluded)
	case checker.observer.Unfinished(checker.lastOperation) != "" && checker.unmet() == nil:
		return "the run cannot be compared with the baseline, because a workload step failed: " + checker.observer.FailedStep
	}
	return ""
}

// Result returns the verdict. It is not-exercised if the run cannot be compared with runs without
// faults (the baseline).
func (checker *baselineChecker) Result() Result {
	result := checker.findings.Result()
	if reason := checker.unusable(); reason != "" {
		result.Verdict, result.Reason = NotExercised, reason
	}
	return result
}
