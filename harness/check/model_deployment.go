package check

import "github.com/kube-gauntlet/gauntlet/harness/objects"

// highestRevision returns the highest revision of the ReplicaSets, or 0 if there are no
// ReplicaSets.
func highestRevision(sets []*objects.Owner) (revision int64) {
	for _, set := range sets {
		revision = max(revision, set.Revision)
	}
	return revision
}

// scalingPending reports whether a ReplicaSet was last scaled for another spec.replicas of
// the Deployment. The controller then scales all ReplicaSets in proportion before it
// continues the rollout (contract Deployment 11).
func scalingPending(d *objects.Deployment, sets []*objects.Owner) bool {
	for _, set := range sets {
		if set.Replicas > 0 && set.DesiredReplicas >= 0 && set.DesiredReplicas != d.Replicas {
			return true
		}
	}
	return false
}

// oldestOf returns the oldest ReplicaSet with the given template, or nil if no ReplicaSet
// has it.
func oldestOf(sets []*objects.Owner, pods *objects.Template) (oldest *objects.Owner) {
	for _, set := range sets {
		if set.Template.Same(pods) && (oldest == nil || set.OlderThan(oldest)) {
			oldest = set
		}
	}
	return oldest
}

// availability returns the condition Available that a Deployment must have. The parameter
// enough is true if at least replicas - maxUnavailable replicas are available.
func availability(enough bool) objects.Condition {
	if enough {
		return objects.Condition{Type: objects.AvailableCondition, Status: "True", Reason: objects.MinimumReplicasAvailableReason}
	}
	return objects.Condition{Type: objects.AvailableCondition, Status: "False", Reason: objects.MinimumReplicasUnavailableReason}
}

// splitByTemplate separates the ReplicaSets with the Deployment's template from the
// ReplicaSets with an old template.
func splitByTemplate(d *objects.Deployment, sets []*objects.Owner) (current, old []*objects.Owner) {
	for _, set := range sets {
		if set.Template.Same(d.Template) {
			current = append(current, set)
		} else {
			old = append(old, set)
		}
	}
	return current, old
}

// deploymentComplete reports whether only the new ReplicaSet has pods, and all its pods are
// available.
func deploymentComplete(d *objects.Deployment, sets []*objects.Owner, newSet *objects.Owner) bool {
	return sumOf(sets, statusReplicas) == d.Replicas && newSet.Status.Replicas == d.Replicas && newSet.Status.AvailableReplicas == d.Replicas
}

// canRoll reports whether a rolling update can scale a ReplicaSet now, without waiting
// for pods.
func canRoll(d *objects.Deployment, sets []*objects.Owner, newSet *objects.Owner, old []*objects.Owner) bool {
	specs, oldSpecs := sumOf(sets, specReplicas), sumOf(old, specReplicas)
	switch {
	case newSet.Replicas > d.Replicas, newSet.Replicas < d.Replicas && specs < d.MaxPods():
		return true
	case oldSpecs == 0:
		return false
	}
	spare := specs - d.MinAvailable() - max(0, newSet.Replicas-newSet.Status.AvailableReplicas)
	unhealthy := sumOf(old, func(set *objects.Owner) int { return max(0, set.Replicas-set.Status.AvailableReplicas) })
	return spare > 0 && (unhealthy > 0 || sumOf(sets, availableReplicas) > d.MinAvailable())
}

// specReplicas, statusReplicas and availableReplicas select the count that sumOf adds up.
func specReplicas(set *objects.Owner) int { return set.Replicas }

func statusReplicas(set *objects.Owner) int { return set.Status.Replicas }

func availableReplicas(set *objects.Owner) int { return set.Status.AvailableReplicas }

// sumOf adds up a count over ReplicaSets.
func sumOf(sets []*objects.Owner, count func(*objects.Owner) int) int {
	sum := 0
	for _, set := range sets {
		sum += count(set)
	}
	return sum
}

// rolloutEnded reports whether the rollout is complete according to the Deployment's status
// or its ReplicaSets.
func rolloutEnded(d *objects.Deployment, sets []*objects.Owner, newSet *objects.Owner) bool {
	return d.Complete() || newSet != nil && deploymentComplete(d, sets, newSet)
}
