package check

import (
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// highestRevision returns the highest revision annotation among the ReplicaSets. A new ReplicaSet
// must get a higher revision. The result is 0 for an empty list.
func highestRevision(sets []*objects.Owner) (revision int64) {
	for _, set := range sets {
		revision = max(revision, set.Revision)
	}
	return revision
}

// scalingPending reports whether the controller still has to scale the ReplicaSets because the
// Deployment's spec.replicas changed. The desired-replicas annotation of an active ReplicaSet
// then differs from spec.replicas.
//
// The controller scales all ReplicaSets in proportion before it continues the rollout (contract
// Deployment 11).
func scalingPending(d *objects.Deployment, sets []*objects.Owner) bool {
	for _, set := range sets {
		if set.Replicas > 0 && set.DesiredReplicas >= 0 && set.DesiredReplicas != d.Replicas {
			return true
		}
	}
	return false
}

// pausedScalingPending reports whether the controller still has to scale the ReplicaSets of a paused
// Deployment. If at most one of them is active, a single ReplicaSet must have all replicas. If none
// is active, this is the new ReplicaSet or the newest old one. If several are active, the old ones
// must have no replicas as soon as the new one is saturated; see also scalingPending.
func pausedScalingPending(d *objects.Deployment, sets []*objects.Owner) bool {
	if len(activeOf(sets)) > 1 || len(sets) == 0 {
		return scalingPending(d, sets) || saturated(d, oldestOf(sets, d.Template))
	}
	return sumOf(sets, specReplicas) != d.Replicas
}

// saturated reports whether the new ReplicaSet has all replicas of a Deployment, and all of them are
// available. The old ReplicaSets then need no replicas (contract Deployment 12).
func saturated(d *objects.Deployment, newSet *objects.Owner) bool {
	return newSet != nil && newSet.Replicas == d.Replicas && newSet.DesiredReplicas == d.Replicas && newSet.Status.AvailableReplicas == d.Replicas
}

// activeOf returns the ReplicaSets whose spec.replicas is above 0.
func activeOf(sets []*objects.Owner) []*objects.Owner {
	return slices.DeleteFunc(slices.Clone(sets), func(set *objects.Owner) bool { return set.Replicas <= 0 })
}

// oldestOf returns the oldest ReplicaSet that has the given pod template. If several ReplicaSets
// have the Deployment's template, the controller uses the oldest. The result is nil if no
// ReplicaSet has the template.
func oldestOf(sets []*objects.Owner, pods *objects.Template) (oldest *objects.Owner) {
	for _, set := range sets {
		if set.Template.Same(pods) && (oldest == nil || set.OlderThan(oldest)) {
			oldest = set
		}
	}
	return oldest
}

// availability returns the condition Available that the status of a Deployment must contain. It
// is True if the parameter enough is true: at least replicas - maxUnavailable replicas are
// available.
func availability(enough bool) objects.Condition {
	if enough {
		return objects.Condition{Type: objects.AvailableCondition, Status: "True", Reason: objects.MinimumReplicasAvailableReason}
	}
	return objects.Condition{Type: objects.AvailableCondition, Status: "False", Reason: objects.MinimumReplicasUnavailableReason}
}

// splitByTemplate divides the ReplicaSets into those with the Deployment's pod template
// (current) and those with another template (old).
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

// deploymentComplete reports whether a rollout is complete according to the status of the
// ReplicaSets. Only the new ReplicaSet then has pods. It has as many as the Deployment's
// spec.replicas, and all of these pods are available.
func deploymentComplete(d *objects.Deployment, sets []*objects.Owner, newSet *objects.Owner) bool {
	return sumOf(sets, statusReplicas) == d.Replicas && newSet.Status.Replicas == d.Replicas && newSet.Status.AvailableReplicas == d.Replicas
}

// canRoll reports whether a rolling update can scale at least one ReplicaSet now. If not, the
// controller must first wait until pods become available or terminate.
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

// specReplicas returns the spec.replicas of a ReplicaSet. Callers pass this function to sumOf.
func specReplicas(set *objects.Owner) int { return set.Replicas }

// statusReplicas returns the status.replicas of a ReplicaSet. Callers pass this function to sumOf.
func statusReplicas(set *objects.Owner) int { return set.Status.Replicas }

// availableReplicas returns the status.availableReplicas of a ReplicaSet. Callers also pass this
// function to sumOf.
func availableReplicas(set *objects.Owner) int { return set.Status.AvailableReplicas }

// sumOf returns the sum of a number over all given ReplicaSets. The function count returns that
// number for one ReplicaSet, such as specReplicas.
func sumOf(sets []*objects.Owner, count func(*objects.Owner) int) int {
	sum := 0
	for _, set := range sets {
		sum += count(set)
	}
	return sum
}

// rolloutEnded reports whether a rollout is complete, according to the Deployment's status or to
// the status of its ReplicaSets. A controller may delete old ReplicaSets only then, or while the
// Deployment is paused.
func rolloutEnded(d *objects.Deployment, sets []*objects.Owner, newSet *objects.Owner) bool {
	return d.Complete() || newSet != nil && deploymentComplete(d, sets, newSet)
}
