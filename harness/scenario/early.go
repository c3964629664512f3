package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// This file has checks of [Scenario.CheckReachable] about faults whose objects do not exist, or not yet.

// podFaults has the faults that act on pods of the workload.
var podFaults = []string{"pod-churn", "pod-relabel", "pod-disown", "pod-pending"}

// needs reports an error if the workload never has the objects on which a fault acts. The argument at is the place of the
// fault.
func (v *validator) needs(at string, fault Fault) {
	s := v.scenario
	switch {
	case !s.onlyKnownWriters():
	case fault.Name == "name-taken":
		deployments := slices.ContainsFunc(append(s.creates(), s.userCreates()...), func(c *Create) bool { return c.Kind == Deployment })
		v.check(deployments, at, "found %s, but the workload creates no Deployment, so that no controller creates a ReplicaSet; expected a step that creates a Deployment", fault.Name)
	case slices.Contains(podFaults, fault.Name):
		v.check(slices.ContainsFunc(s.StepsOfAllUsers(), mayCreatePods), at, "found %s, but the workload never has pods; expected a step that creates pods, or an object with at least one replica", fault.Name)
	}
}

// mayCreatePods reports whether an object may have pods because of a step.
func mayCreatePods(step Step) bool {
	switch op := step.Operation.(type) {
	case *Create:
		row, _ := kube.Named(string(op.Kind))
		return op.pods() > 0 || op.Kind.IsGeneric() && row.Role == kube.Workload
	case *Scale:
		return op.Replicas == nil || *op.Replicas > 0
	case *Rollout:
		return op.Replicas != nil && *op.Replicas > 0
	case *Patch:
		return true
	}
	return false
}

// earlyEdits reports an error for each step of another user that changes an object before the workload creates it. It
// considers only the steps whose time it knows: those before the first await or pause. The argument at is the place of
// the fault.
func (v *validator) earlyEdits(at string, fault Fault) {
	begins, known := fault.begins()
	if !known {
		return
	}
	for i, step := range fault.Params.Steps() {
		begins.time += step.After
		if fault.When != nil && step.After > 0 {
			return
		}
		target, acts := step.Target()
		if acts && operationOf(step.Operation).effect != creates {
			created := v.scenario.firstCreate(target)
			early := created >= 0 && begins.before(v.scenario.Workload, created)
			v.check(!early, fmt.Sprintf("%s.steps[%d].%s.name", at, i, operationOf(step.Operation).name),
				"found %s, which workload[%d] creates only after this fault has begun; expected a later fault, such as with when: {step: {index: %d}}", target, created, created)
		}
		if step.Await != nil {
			return
		}
	}
}

// beginning is the time at which a fault begins. It is an event of a step, or a time after the beginning of the workload.
type beginning struct {
	step *StepTrigger
	time time.Duration
}

// begins returns the time at which a fault begins. The result known is false if it depends on the run.
func (f Fault) begins() (at beginning, known bool) {
	switch {
	case f.When == nil:
		return beginning{time: f.From}, true
	case f.When.Step != nil && f.From == 0:
		return beginning{step: f.When.Step}, true
	}
	return beginning{}, false
}

// before reports whether the beginning is always before a step of the workload has created its object.
func (b beginning) before(steps []Step, index int) bool {
	if b.step != nil {
		return b.step.position() < 2*index // at the beginning of the step itself, either may be first
	}
	var earliest time.Duration
	for _, step := range steps[:index+1] {
		earliest += step.After
	}
	return b.time < earliest
}

// firstCreate returns the index of the first step that creates an object. It returns -1 if there is none, or if another user also
// creates the object.
func (s *Scenario) firstCreate(target Target) int {
	if slices.ContainsFunc(s.userCreates(), func(c *Create) bool { return c.Target == target }) {
		return -1
	}
	return slices.IndexFunc(s.Workload, func(step Step) bool {
		create, ok := step.Operation.(*Create)
		return ok && create.Target == target
	})
}
