package check

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// baselineRun observes a run for a checker that compares it with a baseline.
type baselineRun struct {
	baseline *baseline.Baseline // nil if the run has none
	observer *baseline.Observer
	excludes []string // faults after which the baseline does not apply
	excluded string   // the first of them that fired; empty if none did
}

// asWithoutFaults is the expectation of checks that compare a run with a baseline. The summary of
// the evidence has the expected value.
const asWithoutFaults = "the values of runs without faults"

// changeWishes are faults that change what users want.
var changeWishes = []string{"user-edit", "namespace-terminating", "name-taken"}

// newBaselineRun returns the state of a run with the baseline in the settings. The baseline does
// not apply after one of the given faults has fired.
func newBaselineRun(s Settings, excludes []string) baselineRun {
	return baselineRun{baseline: s.Baseline, observer: baseline.NewObserver(), excludes: excludes}
}

// ends reads the next record. It reports whether the observation ends with it, and the baseline
// applies to the run.
func (b *baselineRun) ends(r *history.Record) bool {
	if b.baseline == nil {
		return false
	}
	b.observer.Observe(r)
	if r.Fault != nil && r.Fault.Event == history.FaultFired && b.excluded == "" && slices.Contains(b.excludes, r.Fault.Name) {
		b.excluded = r.Fault.Name
	}
	return r.Phase != nil && r.Phase.Name == history.PhaseEnd && b.unusable() == ""
}

// unusable returns the reason for which the run cannot be compared with a baseline, or "".
func (b *baselineRun) unusable() string {
	switch {
	case b.baseline == nil:
		return "the run has no baseline; see \"gauntlet baseline\""
	case b.excluded != "":
		return fmt.Sprintf("the baseline does not apply after the fault %s", b.excluded)
	case b.observer.FailedStep != "":
		return "the workload differs from that of the baseline: " + b.observer.FailedStep
	}
	return ""
}

// result returns the result of the findings. If the run cannot be compared, the guarantee was not
// exercised.
func (b *baselineRun) result(f *findings) Result {
	result := f.Result()
	if reason := b.unusable(); reason != "" {
		result.Verdict, result.Reason = NotExercised, reason
	}
	return result
}
