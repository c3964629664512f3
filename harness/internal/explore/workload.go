package explore

import (
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// settleWithin is the time limit of each await step that WithoutFaults adds.
const settleWithin = time.Minute

// WithoutFaults returns a copy of the scenario without its faults. The search adds the faults of a
// place to this copy.
//
// Faults begin only during the workload, so the workload must last until the last write of the
// controllers under test. WithoutFaults therefore adds steps at the end of the workload, which wait
// until all objects have settled.
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

// settled returns the condition with which a step can await that an object has settled.
//
//   - The condition is "complete" if the Kind has this condition and no step pauses the object.
//   - Otherwise, the condition is "available" if the Kind has this condition.
//   - Otherwise settled returns false, and the workload of the scenario must
//     await the object itself.
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
// "complete".
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
