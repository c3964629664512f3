package explore

import (
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// settleWithin is the time limit of each await step that WithoutFaults adds.
const settleWithin = time.Minute

// WithoutFaults returns a copy of the scenario without its faults, and without the list of checks
// that the scenario exercises. The search adds the faults of a place to this copy.
//
// Faults begin only during the workload, so the workload must last until the last write of the
// controllers under test. WithoutFaults therefore adds await steps at the end of the workload.
// There is one such step for each object for which the function settled returns a condition. The
// workload of the scenario itself must wait for all other objects.
func WithoutFaults(s *scenario.Scenario) *scenario.Scenario {
	calm := s.Clone()
	calm.Faults, calm.Exercises = nil, nil
	for _, target := range calm.ExistingObjects() {
		if until, ok := settled(calm, target); ok {
			calm.Workload = append(calm.Workload, scenario.Step{
				Await: &scenario.Await{Target: target, Until: until, Within: settleWithin},
			})
		}
	}
	return calm
}

// settled returns the condition that an await step must use to wait until the object target is
// settled. An object is settled when its controller has carried out the object's spec. The
// condition depends on the Kind of target, because not every Kind has every condition:
//
//   - The condition is "complete" if the Kind has this condition and no step of s pauses target.
//   - Otherwise, the condition is "available" if the Kind has this condition.
//   - Otherwise, settled returns "" and false: the Kind has no suitable condition.
func settled(s *scenario.Scenario, target scenario.Target) (scenario.Until, bool) {
	conditions := conditionsOf(target.Kind)
	paused := slices.ContainsFunc(s.Workload, func(step scenario.Step) bool { return pauses(step, target) })
	switch {
	case slices.Contains(conditions, scenario.Complete) && !paused:
		// A paused Deployment may never complete the rollout of its last pod template.
		return scenario.Complete, true
	case slices.Contains(conditions, scenario.Available):
		return scenario.Available, true
	}
	return "", false
}

// conditionsOf returns the conditions that a step can await for objects of a Kind, such as
// "complete". For an unknown Kind, it returns nil.
func conditionsOf(kind scenario.Kind) []scenario.Until {
	for _, known := range scenario.Kinds() {
		if known.Kind == kind {
			return known.Conditions
		}
	}
	return nil
}

// pauses reports whether a step pauses the rollout of the target, or creates the target as paused.
func pauses(step scenario.Step, target scenario.Target) bool {
	switch op := step.Operation.(type) {
	case *scenario.Pause:
		return op.Target == target
	case *scenario.Create:
		return op.Target == target && op.Paused
	}
	return false
}
