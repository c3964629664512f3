package explore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// stepCameEarly is the reason of an unknown verdict. The run only differs from the baseline if the user
// acts before the subject is quiet.
const stepCameEarly = "the run ends as those without faults if the user waits until the subject is quiet; a step may have come before the subject had carried out the previous one; otherwise: "

// patientRuns is how many runs with a patient user must end as those without faults. A bug that depends on
// a race is absent from some runs, also without a patient user.
const patientRuns = 3

// patient returns a copy of a scenario in which the user waits before some operations until the subject is
// quiet. These are the operations from the step with the index from on, but not the first operation of the
// workload. Earlier steps stay as they are, so that the fault hits the same request or event. It returns nil
// if there is no such operation.
//
// A fault may delay the subject until the next step of the workload. The subject then never sees the state
// between two steps, so that it creates fewer objects, or deletes one that it no longer needs. This is no
// violation, although the run differs from the baseline.
func patient(s *scenario.Scenario, from int) *scenario.Scenario {
	slow := s.Clone()
	slow.Workload = nil
	operations, waits := 0, 0
	for i, step := range s.Workload {
		if step.Operation != nil {
			if operations++; operations > 1 && i >= from {
				waits++
				slow.Workload = append(slow.Workload, scenario.Step{Await: &scenario.Await{Until: scenario.Quiet, Within: settleWithin}})
			}
		}
		slow.Workload = append(slow.Workload, step)
	}
	if waits == 0 {
		return nil
	}
	return slow
}

// withPatience makes a run that only differs from the baseline again, with a patient user. The argument r
// is the result of the first run. The argument slow is its scenario with a patient user, or nil if no operation
// may have followed the fault; withPatience then does nothing. If none of patientRuns runs
// differs although the same faults fire, the verdict of r becomes unknown. The directories of these runs are
// below out, and withPatience removes them.
func (s *search) withPatience(ctx context.Context, t trial, r *result, slow *scenario.Scenario, expected *baseline.Baseline, out string) error {
	if slow == nil {
		return nil
	}
	for range patientRuns {
		dir := filepath.Join(out, "patient")
		seen := newRunObserver()
		run, err := s.Start(ctx, slow, expected, dir, seen.observe)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing the directory of a run: %w", err)
		}
		if run == nil || err != nil {
			s.Progress(fmt.Sprintf("%s: the run with a user who waits could not start: %v", t, err))
			return nil
		}
		if seen.disturbed() || !seen.firedAll(t.mustFire()) || s.check(t, run, seen).Verdict == check.Fail || !passesAgain(r.run, run) {
			return nil
		}
	}
	r.Verdict, r.Reason = check.Unknown, stepCameEarly+differing(r.run)
	r.run.Verdict, r.run.Reason = r.Verdict, r.Reason
	for i := range r.run.Results {
		if failed(r.run.Results[i]) {
			r.run.Results[i].Verdict = check.Unknown
		}
	}
	return nil
}

// passesAgain reports whether each check that failed in the first run passed in the second.
func passesAgain(first, second *reports.Run) bool {
	return !slices.ContainsFunc(first.Results, func(r check.Result) bool {
		return failed(r) && !slices.ContainsFunc(second.Results, func(again check.Result) bool { return again.Check == r.Check && again.Verdict == check.Pass })
	})
}
