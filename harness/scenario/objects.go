package scenario

import (
	"slices"
	"strconv"
)

// PodsMax returns the maximum number of pods that the workload requests at one time. For
// Deployments it adds a quarter, because a rollout may create maxSurge additional pods. For
// objects of generic kinds it counts spec.replicas, or 0 if their manifest has no replicas.
// An external workload states the number.
func (s *Scenario) PodsMax() int {
	if s.ExternalWorkload != nil {
		return s.ExternalWorkload.Pods
	}
	requested := map[Target]int{}
	most := 0
	for i := range s.Workload {
		switch op := s.Workload[i].Operation.(type) {
		case *Create:
			requested[op.Target] = op.pods()
		case *Scale:
			requested[op.Target] = *op.Replicas
		case *Rollout:
			if op.Replicas != nil {
				requested[op.Target] = *op.Replicas
			}
		case *Patch:
			if replicas, ok := op.Merge.replicas(); ok {
				requested[op.Target] = replicas
			}
		case *Select:
			if op.Kind == ReplicationController { // released pods, which the new selector does not match, remain
				requested[Target{Kind: Pod, Name: op.Name + " before step " + strconv.Itoa(i)}] = requested[op.Target]
			}
		case *Delete:
			delete(requested, op.Target)
		}
		sum := 0
		for target, pods := range requested {
			if target.Kind == Deployment {
				pods += (pods + 3) / 4
			}
			sum += pods
		}
		most = max(most, sum)
	}
	return most
}

// pods returns the number of pods that the created object requests.
func (c *Create) pods() int {
	switch {
	case c.Replicas != nil:
		return *c.Replicas
	case c.Kind == Pod:
		return c.Count
	}
	replicas, _ := c.Manifest.replicas()
	return replicas
}

// ExistingObjects returns the objects that exist after the last step of the workload, in
// the order of their creation.
func (s *Scenario) ExistingObjects() []Target {
	var existing []Target
	for _, step := range s.Workload {
		target, acts := step.Target()
		if !acts {
			continue
		}
		switch operationOf(step.Operation).effect {
		case creates:
			existing = append(existing, target)
		case deletes:
			existing = slices.DeleteFunc(existing, func(other Target) bool { return other == target })
		}
	}
	return existing
}
