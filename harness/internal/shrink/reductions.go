package shrink

import (
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// reduction is one way to make a scenario smaller, such as removing faults or halving delays.
type reduction struct {
	name string
	// parts returns how many parts of a scenario, such as faults, the reduction can remove or
	// reduce.
	parts func(*scenario.Scenario) int
	// apply removes or reduces the parts in the slice [from:to] of all parts. It reports whether
	// the scenario changed.
	apply func(s *scenario.Scenario, from, to int) bool
}

// reductions has all reductions, in the order in which Shrink tries them. Reductions that remove
// the most come first.
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

// dropFaults removes the faults s.Faults[from:to]. It always returns true, because the scenario
// always changes.
func dropFaults(s *scenario.Scenario, from, to int) bool {
	s.Faults = slices.Delete(s.Faults, from, to)
	return true
}

// objects returns the objects on which operations of the workload act. Each object occurs once.
func objects(s *scenario.Scenario) []scenario.Target {
	var all []scenario.Target
	for _, step := range s.Workload {
		if target, acts := step.Target(); acts && !slices.Contains(all, target) {
			all = append(all, target)
		}
	}
	return all
}

// dropObjects removes the workload steps whose operation acts on one of the objects in
// objects(s)[from:to]. It also removes the steps without an operation that await one of these
// objects. dropObjects always returns true, because the scenario always changes.
func dropObjects(s *scenario.Scenario, from, to int) bool {
	gone := objects(s)[from:to]
	s.Workload = slices.DeleteFunc(s.Workload, func(step scenario.Step) bool {
		target, acts := step.Target()
		return acts && slices.Contains(gone, target) || !acts && slices.Contains(gone, step.Await.Target)
	})
	return true
}

// dropSteps removes the steps s.Workload[from:to]. It adds the delays of these steps to the next
// step. The other steps thus still happen at the same time relative to the faults. dropSteps always
// returns true, because the scenario always changes.
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

// dropAwaits removes the await of each step that also has an operation. It changes only the steps
// s.Workload[from:to], and reports whether one of them had such an await.
func dropAwaits(s *scenario.Scenario, from, to int) bool {
	changed := false
	for i := range s.Workload[from:to] {
		if step := &s.Workload[from+i]; step.Operation != nil && step.Await != nil {
			step.Await, changed = nil, true
		}
	}
	return changed
}

// environment lists the simplifications that do not change the workload or the faults. Each
// function sets one setting of the cluster or of the controllers under test to its simplest value.
// The last function removes the list of checks that the scenario exercises. Each function reports
// whether the scenario changed.
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

// simplifyEnvironment applies the simplifications environment[from:to] to a scenario, such as fewer
// nodes. It reports whether the scenario changed.
func simplifyEnvironment(s *scenario.Scenario, from, to int) bool {
	changed := false
	for _, simplify := range environment[from:to] {
		changed = simplify(s) || changed
	}
	return changed
}

// set sets a field of a scenario to the value of the argument to, and reports whether the field
// changed.
func set[T comparable](field *T, to T) bool {
	changed := *field != to
	*field = to
	return changed
}

// eachStep returns a function for reduction.apply. The function calls change for a range of the
// workload's steps, and returns true if any step was changed.
func eachStep(change func(*scenario.Step) bool) func(*scenario.Scenario, int, int) bool {
	return func(s *scenario.Scenario, from, to int) bool { return each(s.Workload[from:to], change) }
}

// eachFault returns a function for reduction.apply that applies a change to each of the faults
// s.Faults[from:to].
func eachFault(change func(*scenario.Fault) bool) func(*scenario.Scenario, int, int) bool {
	return func(s *scenario.Scenario, from, to int) bool { return each(s.Faults[from:to], change) }
}

// each applies a change to all items of a slice. It reports whether any item changed.
func each[T any](all []T, change func(*T) bool) bool {
	changed := false
	for i := range all {
		changed = change(&all[i]) || changed
	}
	return changed
}

// halveReplicas halves the number of replicas or pods of a step's operation, but not below 1. It
// reports whether the step changed.
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

// halve halves a number that is greater than 1, and reports whether the number changed. It ignores
// nil.
func halve(n *int) bool {
	if n == nil || *n <= 1 {
		return false
	}
	*n /= 2
	return true
}

// timeUnit is the unit to which halveTime rounds times down, so that a smaller scenario contains
// only round times.
const timeUnit = 50 * time.Millisecond

// halveTime halves a time, and rounds the result down to a multiple of timeUnit. The argument least
// is the minimum of the result. halveTime reports whether the time changed.
func halveTime(d *time.Duration, least time.Duration) bool {
	if *d <= least {
		return false
	}
	half := (*d / 2).Truncate(timeUnit)
	*d = max(half, least)
	return true
}
