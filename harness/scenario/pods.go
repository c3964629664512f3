package scenario

import "strconv"

// PodsMax is the most pods that the workload asks for at once, a quarter more for
// Deployments, which surge.
func (s *Scenario) PodsMax() int {
	asked := map[Target]int{}
	most := 0
	for i := range s.Workload {
		switch op := s.Workload[i].Operation.(type) {
		case *Create:
			asked[op.Target] = op.pods()
		case *Scale:
			asked[op.Target] = *op.Replicas
		case *Rollout:
			if op.Replicas != nil {
				asked[op.Target] = *op.Replicas
			}
		case *Select:
			if op.Kind == ReplicationController { // the pods that it no longer selects stay
				asked[Target{Kind: Pod, Name: op.Name + " before step " + strconv.Itoa(i)}] = asked[op.Target]
			}
		case *Delete:
			delete(asked, op.Target)
		}
		sum := 0
		for target, pods := range asked {
			if target.Kind == Deployment {
				pods += (pods + 3) / 4
			}
			sum += pods
		}
		most = max(most, sum)
	}
	return most
}

// pods is how many pods the object that is made asks for.
func (c *Create) pods() int {
	switch {
	case c.Replicas != nil:
		return *c.Replicas
	case c.Kind == Pod:
		return c.Count
	}
	return 0
}
