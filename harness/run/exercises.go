package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// ValidateBeforeStart returns an error with all reasons not to start a run of the scenario:
//
//   - the errors of [Validate]
//   - triggers that never match
//   - checks in the field `exercises` that no run of the scenario can exercise,
//     because nothing in the run could violate them
func ValidateBeforeStart(s *scenario.Scenario) error {
	errs := []error{Validate(s), s.CheckReachable()}
	for i, id := range s.Exercises {
		if c, ok := check.Find(id); ok {
			errs = append(errs, checkExercised(s, fmt.Sprintf("exercises[%d]", i), &c))
		}
	}
	return scenario.JoinErrors(errs...)
}

// validateExercises returns one error for each unknown check in the scenario's field `exercises`.
// A check is unknown if no check has this ID.
func validateExercises(s *scenario.Scenario) []error {
	var errs []error
	for i, id := range s.Exercises {
		if _, ok := check.Find(id); !ok && id != "" {
			var known []string
			for _, c := range check.All {
				known = append(known, c.ID)
			}
			errs = append(errs, s.Errorf(fmt.Sprintf("exercises[%d]", i), "unknown check %q; expected one of %s%s", id, strings.Join(known, ", "), nearest.Suggestion(id, known)))
		}
	}
	return errs
}

// checkExercised returns an error if no run of the scenario can exercise the check c. There are two
// such cases:
//
//   - The check applies to none of the controllers under test.
//   - The check applies to some of them, but the workload creates no object
//     that one of these controllers reconciles.
//
// The argument path is the place of the check's ID in the scenario, such as "exercises[0]". The
// error contains it.
func checkExercised(s *scenario.Scenario, path string, c *check.Check) error {
	controllers := s.Controllers()
	if len(controllers) == 0 {
		return nil // the name of a controller is wrong
	}
	if !c.Scope.AppliesTo(controllers) {
		return s.Errorf(path, "found check %s, which applies to none of the controllers under test; expected another check, or a controller in subject.controllers to which the check applies; scope of the check: %s", c.ID, c.Scope)
	}
	if cause, limited := causes[c.ID]; limited && s.ExternalWorkload == nil && s.Operator == nil && !s.Invalid("workload") && !s.Invalid("faults") && !cause.in(s) {
		return s.Errorf(path, "found check %s, which nothing in the scenario exercises; expected %s, or another check", c.ID, cause.expected)
	}
	if c.Scope.General() || s.ExternalWorkload != nil || s.Invalid("workload") {
		return nil
	}
	var reconciled []string
	for i := range controllers {
		if c.Scope.AppliesTo(controllers[i : i+1]) {
			reconciled = append(reconciled, controllers[i].Kind)
		}
	}
	if slices.ContainsFunc(reconciledKinds(s), func(kind string) bool { return slices.Contains(reconciled, kind) }) {
		return nil
	}
	return s.Errorf(path, "found check %s, which nothing in the scenario exercises; expected a step that creates %s, or another check", c.ID, nearest.AnyOf(reconciled))
}

// causes has what a scenario needs to exercise some checks, by the ID of the check. Other checks need only objects.
var causes = map[string]struct {
	expected string
	in       func(*scenario.Scenario) bool
}{
	"terminating-namespace": {"the fault namespace-terminating", func(s *scenario.Scenario) bool {
		return slices.ContainsFunc(s.Faults, func(f scenario.Fault) bool { return f.Name == "namespace-terminating" })
	}},
	"rollback": {"a rollback step", func(s *scenario.Scenario) bool { return slices.ContainsFunc(s.StepsOfAllUsers(), rollsBack) }},
	"revision-history-limit": {"a step such as rollout, after which a Deployment has an old ReplicaSet", func(s *scenario.Scenario) bool {
		return slices.ContainsFunc(s.StepsOfAllUsers(), mayLeaveReplicaSet)
	}},
}

// rollsBack reports whether a step may roll back a Deployment. A patch or an annotation may also do so.
func rollsBack(step scenario.Step) bool {
	switch step.Operation.(type) {
	case *scenario.Rollback, *scenario.Patch, *scenario.Annotate:
		return true
	}
	return false
}

// mayLeaveReplicaSet reports whether a Deployment may have an old ReplicaSet after a step. It may change its template, or
// adopt a ReplicaSet.
func mayLeaveReplicaSet(step scenario.Step) bool {
	switch op := step.Operation.(type) {
	case *scenario.Rollout, *scenario.Delete, *scenario.Label:
		return true
	case *scenario.Create:
		return op.Kind == scenario.ReplicaSet
	}
	return rollsBack(step)
}

// reconciledKinds returns the Kinds of the objects that the steps of the scenario create or change.
// For a Deployment, the result includes ReplicaSet, because the Deployment controller creates
// ReplicaSets.
func reconciledKinds(s *scenario.Scenario) []string {
	var kinds []string
	for _, step := range s.StepsOfAllUsers() {
		switch target, _ := step.Target(); target.Kind {
		case scenario.Deployment:
			kinds = append(kinds, kube.Deployment, kube.ReplicaSet)
		case scenario.Service, scenario.Endpoints:
			kinds = append(kinds, kube.Service)
		default:
			kinds = append(kinds, string(target.Kind))
		}
	}
	return kinds
}
