package shrink

import (
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// reduction makes parts of a scenario smaller.
type reduction struct {
	name string
	// parts returns the number of parts that the reduction can change.
	parts func(*scenario.Scenario) int
	// apply reduces the parts with the indexes from, from+1, …, to-1. It reports whether
	// the scenario changed.
	apply func(s *scenario.Scenario, from, to int) bool
}

// reductions are in the order in which Shrink tries them, the largest first.
var reductions = []reduction{
	{"faults", func(s *scenario.Scenario) int { return len(s.Faults) }, dropFaults},
	{"objects", func(s *scenario.Scenario) int { return len(objects(s)) }, dropObjects},
	{"steps", func(s *scenario.Scenario) int { return len(s.Workload) }, dropSteps},
	{"awaits", func(s *scenario.Scenario) int { return len(s.Workload) }, dropAwaits},
	{"environment", func(*scenario.Scenario) int { return len(environment) }, simplifyEnvironment},
	{"replicas", func(s *scenario.Scenario) int { return len(s.Workload) }, eachStep(halveReplicas)},
	{"delays", func(s *scenario.Scenario) int { return len(s.Workload) }, eachStep(func(step *scenario.Step) bool { return halveTime(&step.After, 0) })},
	{"fault begins", func(s *scenario.Scenario) int { return len(s.Faults) }, eachFault(func(f *scenario.Fault) bool { return halveTime(&f.From, 0) })},
	{"fault durations", func(s *scenario.Scenario) int { return len(s.Faults) }, eachFault(func(f *scenario.Fault) bool { return halveTime(&f.For, time.Second) })},
}

func dropFaults(s *scenario.Scenario, from, to int) bool {
	s.Faults = slices.Delete(s.Faults, from, to)
	return true
}

// objects returns the objects of the steps without repetitions.
func objects(s *scenario.Scenario) []scenario.Target {
	var all []scenario.Target
	for _, step := range s.Workload {
		if target, acts := step.Target(); acts && !slices.Contains(all, target) {
			all = append(all, target)
		}
	}
	return all
}

// dropObjects removes all steps of some objects.
func dropObjects(s *scenario.Scenario, from, to int) bool {
	gone := objects(s)[from:to]
	s.Workload = slices.DeleteFunc(s.Workload, func(step scenario.Step) bool {
		target, acts := step.Target()
		return acts && slices.Contains(gone, target) || !acts && slices.Contains(gone, step.Await.Target)
	})
	return true
}

// dropSteps removes steps. It adds their delays to the next step, so that the remaining
// steps happen at the same time relative to the faults.
func dropSteps(s *scenario.Scenario, from, to int) bool {
	var delay time.Duration
	for _, step := range s.Workload[from:to] {
		delay += step.After
	}
	if to < len(s.Workload) {
		s.Workload[to].After += delay
	}
	s.Workload = slices.Delete(s.Workload, from, to)
	return true
}

// dropAwaits removes awaits from steps that also have an operation.
func dropAwaits(s *scenario.Scenario, from, to int) bool {
	changed := false
	for i := range s.Workload[from:to] {
		if step := &s.Workload[from+i]; step.Operation != nil && step.Await != nil {
			step.Await, changed = nil, true
		}
	}
	return changed
}

// environment reduces the sections cluster, subject and exercises to their simplest
// values.
var environment = []func(*scenario.Scenario) bool{
	func(s *scenario.Scenario) bool { return set(&s.Subject.Replicas, 1) },
	func(s *scenario.Scenario) bool { return set(&s.Cluster.Nodes, 1) },
	func(s *scenario.Scenario) bool { return set(&s.Cluster.PodStartDelay, 0) },
	func(s *scenario.Scenario) bool { return set(&s.Cluster.PodStopDelay, 0) },
	func(s *scenario.Scenario) bool {
		had := len(s.Exercises) > 0
		s.Exercises = nil // the smaller scenario may exercise fewer checks
		return had
	},
}

func simplifyEnvironment(s *scenario.Scenario, from, to int) bool {
	changed := false
	for _, simplify := range environment[from:to] {
		changed = simplify(s) || changed
	}
	return changed
}

func set[T comparable](field *T, to T) bool {
	changed := *field != to
	*field = to
	return changed
}

func eachStep(change func(*scenario.Step) bool) func(*scenario.Scenario, int, int) bool {
	return func(s *scenario.Scenario, from, to int) bool { return each(s.Workload[from:to], change) }
}

func eachFault(change func(*scenario.Fault) bool) func(*scenario.Scenario, int, int) bool {
	return func(s *scenario.Scenario, from, to int) bool { return each(s.Faults[from:to], change) }
}

// each applies a change to all items, and reports whether any item changed.
func each[T any](all []T, change func(*T) bool) bool {
	changed := false
	for i := range all {
		changed = change(&all[i]) || changed
	}
	return changed
}

// halveReplicas halves the replicas or the pods of a step, to at least 1.
func halveReplicas(step *scenario.Step) bool {
	switch op := step.Operation.(type) {
	case *scenario.Create:
		return halve(op.Replicas) || halve(&op.Count)
	case *scenario.Scale:
		return halve(op.Replicas)
	case *scenario.Rollout:
		return halve(op.Replicas)
	}
	return false
}

func halve(n *int) bool {
	if n == nil || *n <= 1 {
		return false
	}
	*n /= 2
	return true
}

// timeUnit is the unit to which reduced times are rounded.
const timeUnit = 50 * time.Millisecond

// halveTime halves a time. The result is not below the given minimum.
func halveTime(d *time.Duration, least time.Duration) bool {
	if *d <= least {
		return false
	}
	half := (*d / 2).Truncate(timeUnit)
	*d = max(half, least)
	return true
}
