package check

// rollbackAnnotation asks for a rollback to a revision, 0 for the last one.
const rollbackAnnotation = "deprecated.deployment.rollback.to"

// ended reports whether the rollout is at its end, by its status or by its
// ReplicaSets.
func (d *deployment) ended(sets []*owner, now *owner) bool {
	s := &d.status
	reported := s.Replicas == d.replicas && s.UpdatedReplicas == d.replicas && s.AvailableReplicas == d.replicas && s.ObservedGeneration >= d.generation
	return reported || now != nil && d.complete(sets, now)
}
