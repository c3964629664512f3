package scenario

import (
	"slices"
	"strconv"
	"time"
)

// Pauses returns the sum of the pauses between the steps of the workload. It does not include the
// time for which steps wait for a condition.
func (s *Scenario) Pauses() time.Duration {
	var all time.Duration
	for _, step := range s.Workload {
		all += step.After
	}
	return all
}

// PodsMax returns the maximum number of pods that the objects of the workload need at one time.
//
//   - For a Deployment it adds a quarter, because the default of maxSurge, 25%, allows
//     additional pods during a rollout.
//   - For an object of a generic kind it counts spec.replicas of the manifest, or 0 if the
//     manifest has no replicas.
//   - After a select of a ReplicationController, it counts the released pods of the old selector
//     too.
//   - For an external workload, it returns the number in externalWorkload.pods.
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
			if op.Kind == ReplicationController { // the controller releases the old pods, which remain beside the new ones
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

// pods returns the number of pods that the created object will have. For a Deployment, this is its
// number of replicas.
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

// CreatedObjects returns the objects that the workload creates, in the order of their creation.
func (s *Scenario) CreatedObjects() []Target {
	var created []Target
	for _, create := range s.creates() {
		created = append(created, create.Target)
	}
	return created
}

// ExistingObjects returns the objects that exist after the last step of the workload, in the
// order of their creation.
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
