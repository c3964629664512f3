package shrink

import (
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// reduction is a way to make a scenario smaller, in parts.
type reduction struct {
	name string
	// parts is how many there are, counted from 0.
	parts func(*scenario.Scenario) int
	// apply reduces those from a place up to another, and reports whether that
	// changes anything.
	apply func(s *scenario.Scenario, from, to int) bool
}

// reductions are tried in this order: what takes away most comes first.
var reductions = []reduction{
	{"faults", func(s *scenario.Scenario) int { return len(s.Faults) }, dropFaults},
	{"objects", func(s *scenario.Scenario) int { return len(objects(s)) }, dropObjects},
	{"steps", func(s *scenario.Scenario) int { return len(s.Workload) }, dropSteps},
	{"awaits", func(s *scenario.Scenario) int { return len(s.Workload) }, dropAwaits},
	{"stage", func(*scenario.Scenario) int { return len(stage) }, simplifyStage},
	{"replicas", func(s *scenario.Scenario) int { return len(s.Workload) }, eachStep(halveReplicas)},
	{"pauses", func(s *scenario.Scenario) int { return len(s.Workload) }, eachStep(func(step *scenario.Step) bool { return down(&step.After, 0) })},
	{"beginnings", func(s *scenario.Scenario) int { return len(s.Faults) }, eachFault(func(f *scenario.Fault) bool { return down(&f.From, 0) })},
	{"times", func(s *scenario.Scenario) int { return len(s.Faults) }, eachFault(func(f *scenario.Fault) bool { return down(&f.For, time.Second) })},
}

func dropFaults(s *scenario.Scenario, from, to int) bool {
	s.Faults = slices.Delete(s.Faults, from, to)
	return true
}

// objects are what the steps are about, each once.
func objects(s *scenario.Scenario) []scenario.Target {
	var all []scenario.Target
	for _, step := range s.Workload {
		if target, acts := step.Target(); acts && !slices.Contains(all, target) {
			all = append(all, target)
		}
	}
	return all
}

// dropObjects leaves out everything that is about some objects.
func dropObjects(s *scenario.Scenario, from, to int) bool {
	gone := objects(s)[from:to]
	s.Workload = slices.DeleteFunc(s.Workload, func(step scenario.Step) bool {
		target, acts := step.Target()
		return acts && slices.Contains(gone, target) || !acts && slices.Contains(gone, step.Await.Target)
	})
	return true
}

// dropSteps leaves out steps. The pauses before them stay, so that what follows
// still meets the faults that it met.
func dropSteps(s *scenario.Scenario, from, to int) bool {
	var paused time.Duration
	for _, step := range s.Workload[from:to] {
		paused += step.After
	}
	if to < len(s.Workload) {
		s.Workload[to].After += paused
	}
	s.Workload = slices.Delete(s.Workload, from, to)
	return true
}

// dropAwaits leaves out waits beside an operation; one that stands alone is a step.
func dropAwaits(s *scenario.Scenario, from, to int) bool {
	changed := false
	for i := range s.Workload[from:to] {
		if step := &s.Workload[from+i]; step.Operation != nil && step.Await != nil {
			step.Await, changed = nil, true
		}
	}
	return changed
}

// stage is what a scenario asks for that is not of its workload or faults, with
// what is simplest.
var stage = []func(*scenario.Scenario) bool{
	func(s *scenario.Scenario) bool { return set(&s.Subject.Replicas, 1) },
	func(s *scenario.Scenario) bool { return set(&s.Cluster.Nodes, 1) },
	func(s *scenario.Scenario) bool { return set(&s.Cluster.PodStartDelay, 0) },
	func(s *scenario.Scenario) bool { return set(&s.Cluster.PodStopDelay, 0) },
	func(s *scenario.Scenario) bool {
		had := len(s.Exercises) > 0
		s.Exercises = nil // what it put to the test when it was large
		return had
	},
}

func simplifyStage(s *scenario.Scenario, from, to int) bool {
	changed := false
	for _, simplify := range stage[from:to] {
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

// each changes all of some, and reports whether one changed.
func each[T any](all []T, change func(*T) bool) bool {
	changed := false
	for i := range all {
		changed = change(&all[i]) || changed
	}
	return changed
}

// halveReplicas brings the replicas or the pods of a step down, to no less than 1.
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

// grain is the smallest time that is worth halving.
const grain = 50 * time.Millisecond

// down halves a time, and ends at the least.
func down(d *time.Duration, least time.Duration) bool {
	if *d <= least {
		return false
	}
	half := (*d / 2).Truncate(grain)
	*d = max(half, least)
	return true
}
