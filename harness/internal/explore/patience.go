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

// patient returns a copy of a scenario in which the user waits before each operation until the subject is
// quiet. It returns nil if the workload has only one operation.
//
// A fault may delay the subject until the next step of the workload. The subject then never sees the state
// between two steps, so that it creates fewer objects, or deletes one that it no longer needs. This is no
// violation, although the run differs from the baseline.
func patient(s *scenario.Scenario) *scenario.Scenario {
	slow := s.Clone()
	slow.Workload = nil
	operations := 0
	for _, step := range s.Workload {
		if step.Operation != nil {
			if operations++; operations > 1 {
				slow.Workload = append(slow.Workload, scenario.Step{Await: &scenario.Await{Until: scenario.Quiet, Within: settleWithin}})
			}
		}
		slow.Workload = append(slow.Workload, step)
	}
	if operations < 2 {
		return nil
	}
	return slow
}

// withPatience makes a run that only differs from the baseline again, with a patient user. The argument r
// is the result of the first run. If the second run does not differ although the same faults fire, the
// verdict of r becomes unknown. The directory of the second run is below out, and withPatience removes it.
func (s *search) withPatience(ctx context.Context, t trial, r *result, disturbed *scenario.Scenario, expected *baseline.Baseline, out string) error {
	slow := patient(disturbed)
	if slow == nil {
		return nil
	}
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
	if seen.disturbed() || !seen.firedAll(t.mustFire()) || s.check(t, run, seen).Verdict == check.Fail {
		return nil
	}
	if !passesAgain(r.run, run) {
		return nil
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
