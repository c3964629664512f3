package explore

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// overtaken is the reason of an unknown verdict. The run only differs from the baseline if the user acts
// before the subject has settled.
const overtaken = "the run ends as those without faults if the user waits until the subject has settled; a step may have come before the subject had carried out the previous one"

// patient returns a copy of a scenario in which the user waits before each operation until the subject has
// settled. It returns nil if the workload has only one operation.
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
				slow.Workload = append(slow.Workload, scenario.Step{Await: &scenario.Await{Until: scenario.Settled, Within: settleWithin}})
			}
		}
		slow.Workload = append(slow.Workload, step)
	}
	if operations < 2 {
		return nil
	}
	return slow
}

// sameIfPatient reports whether the failures of a run disappear if the user is patient. The same faults
// must fire. It makes a further run, whose directory is below out, and removes this directory.
func (s *search) sameIfPatient(ctx context.Context, t trial, disturbed *scenario.Scenario, expected *baseline.Baseline, out string) (bool, error) {
	slow := patient(disturbed)
	if slow == nil {
		return false, nil
	}
	dir := filepath.Join(out, "patient")
	seen := &runObserver{fired: map[int]bool{}}
	run, err := s.Start(ctx, slow, expected, dir, seen.observe)
	removed := os.RemoveAll(dir)
	if run == nil || err != nil || removed != nil {
		return false, removed // the failure of the first run stands
	}
	differs := slices.ContainsFunc(run.Results, func(r check.Result) bool { return failed(r) && slices.Contains(baselineChecks, r.Check) })
	return !differs && seen.failedStep == "" && seen.firedAll(t.mustFire()), nil
}
