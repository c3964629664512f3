package check

import (
	"maps"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// pendingDeployment returns how a Deployment, its status and its ReplicaSets differ from the
// converged state. It does not look at pods, because pendingOwner does so for each ReplicaSet. A
// Deployment that is terminating or has an empty selector has no differences.
func (state *objectSet) pendingDeployment(d *objects.Deployment, now time.Time) []pending {
	return state.pendingDeploymentWith(d, nil, now)
}

// pendingDeploymentWith is like pendingDeployment, but counts only newSet as the new ReplicaSet.
// Other ReplicaSets with the Deployment's template then count as old ones. If newSet is nil, all
// ReplicaSets with this template count as new. If the Deployment has adopted one of them, only the oldest
// counts.
func (state *objectSet) pendingDeploymentWith(d *objects.Deployment, newSet *objects.Owner, now time.Time) []pending {
	if d.Terminating || d.Selector.Empty() {
		return nil
	}
	list := pendings{subject: d.String()}
	sets := state.replicaSetsOf(d)
	list.expect(d.Status.ObservedGeneration == d.Generation, "status.observedGeneration is %d, expected %d",
		d.Status.ObservedGeneration, d.Generation)
	list.expect(d.RollbackTo < 0 || d.Paused, "annotation %s is %d, expected the controller to roll back and remove the annotation", objects.RollbackAnnotation, d.RollbackTo)
	for _, set := range state.orphanReplicaSets(d) {
		list.expect(false, "ReplicaSet %s matches spec.selector and has no controllerRef, expected its adoption", set.Name)
	}
	current, _ := splitByTemplate(d, sets)
	oldest := oldestOf(current, d.Template)
	current = slices.DeleteFunc(current, func(set *objects.Owner) bool {
		return newSet != nil && set != newSet || set != oldest && (state.reassigned[set.UID] || state.reassigned[oldest.UID])
	})
	old := slices.DeleteFunc(slices.Clone(sets), func(set *objects.Owner) bool { return slices.Contains(current, set) })
	if d.Paused {
		list.expect(!pausedScalingPending(d, sets), "the Deployment is paused, but its ReplicaSets are not scaled to spec.replicas %d", d.Replicas)
		if len(current) == 1 {
			pendingNewSet(d, &list, current[0], old)
		}
	} else {
		state.pendingRollout(d, &list, current, old)
	}
	others := len(list.all)
	pendingStatus(d, &list, sets, current, now)
	for i := range list.all[others:] {
		list.all[others+i].ofStatus = true
	}
	return list.all
}

// pendingRollout finds how the ReplicaSets of a Deployment differ from a finished rollout. It adds
// these differences to list.all. It compares the sizes, revisions and annotations of the
// ReplicaSets, and the number of old ReplicaSets. The Deployment must not be paused.
//
// The slice current contains the ReplicaSets with the Deployment's pod template, and the slice old
// contains the others.
func (state *objectSet) pendingRollout(d *objects.Deployment, list *pendings, current, old []*objects.Owner) {
	if len(current) != 1 {
		// With strategy Recreate, the new ReplicaSet does not exist while old pods run.
		awaited := len(current) == 0 && d.Recreate && !state.canScale(d, old, nil, old)
		list.add(false, awaited, "%d ReplicaSets have the Deployment's spec.template, expected 1", len(current))
		return
	}
	newSet, sets := current[0], slices.Concat(current, old)
	awaited := !state.canScale(d, sets, newSet, old)
	list.add(newSet.Replicas == d.Replicas, awaited, "ReplicaSet %s: spec.replicas is %d, expected %d", newSet.Name, newSet.Replicas, d.Replicas)
	for _, set := range old {
		list.add(set.Replicas == 0, awaited, "old ReplicaSet %s: spec.replicas is %d, expected 0", set.Name, set.Replicas)
	}
	pendingNewSet(d, list, newSet, old)
	if deploymentComplete(d, sets, newSet) {
		list.expect(len(old) <= d.RevisionHistoryLimit, "%d old ReplicaSets, expected at most %d (revisionHistoryLimit)", len(old), d.RevisionHistoryLimit)
	}
}

// pendingNewSet finds how the new ReplicaSet of a Deployment differs from the Deployment in its revision,
// minReadySeconds and annotations. It adds the differences to list.all. The controller updates these
// fields even of a paused Deployment.
func pendingNewSet(d *objects.Deployment, list *pendings, newSet *objects.Owner, old []*objects.Owner) {
	for _, set := range old {
		list.expect(set.Revision < newSet.Revision, "ReplicaSet %s has revision %d, expected more than revision %d of old ReplicaSet %s",
			newSet.Name, newSet.Revision, set.Revision, set.Name)
	}
	list.expect(d.Revision == newSet.Revision, "annotation %s is %d, expected %d, the revision of ReplicaSet %s",
		objects.RevisionAnnotation, d.Revision, newSet.Revision, newSet.Name)
	list.expect(newSet.MinReady == d.MinReady, "ReplicaSet %s: spec.minReadySeconds is %d, expected %d",
		newSet.Name, newSet.MinReady/time.Second, d.MinReady/time.Second)
	for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
		found, ok := newSet.Annotations[key]
		list.expect(ok, "ReplicaSet %s has no annotation %s, expected %q", newSet.Name, key, d.Annotations[key])
		list.expect(!ok || found == d.Annotations[key], "ReplicaSet %s: annotation %s is %q, expected %q", newSet.Name, key, found, d.Annotations[key])
	}
}

// canScale reports whether the update strategy allows the controller to scale at least one
// ReplicaSet now. If not, the controller must wait until pods become available or terminate.
func (state *objectSet) canScale(d *objects.Deployment, sets []*objects.Owner, newSet *objects.Owner, old []*objects.Owner) bool {
	if d.Recreate {
		return sumOf(old, specReplicas) > 0 || state.firstPod(old, func(*objects.Pod) bool { return true }) == nil
	}
	return canRoll(d, sets, newSet, old)
}

// pendingStatus finds how the status of a Deployment differs from the status that its ReplicaSets
// imply. It adds the differences to list.all. The slice current contains the ReplicaSets with the
// Deployment's pod template.
func pendingStatus(d *objects.Deployment, list *pendings, sets, current []*objects.Owner, now time.Time) {
	s := &d.Status
	specs, ready := sumOf(sets, specReplicas), sumOf(sets, availableReplicas)
	for _, field := range []struct {
		name            string
		found, expected int
	}{
		{"replicas", s.Replicas, sumOf(sets, statusReplicas)},
		{"updatedReplicas", s.UpdatedReplicas, sumOf(current, statusReplicas)},
		{"readyReplicas", s.ReadyReplicas, sumOf(sets, func(set *objects.Owner) int { return set.Status.ReadyReplicas })},
		{"availableReplicas", s.AvailableReplicas, ready},
		{"unavailableReplicas", s.UnavailableReplicas, max(0, specs-ready)},
	} {
		list.expect(field.found == field.expected, "status.%s is %d, expected %d, the sum over its ReplicaSets", field.name, field.found, field.expected)
	}
	list.expectCondition(s, availability(ready >= d.MinAvailable()))
	failing := slices.ContainsFunc(sets, func(set *objects.Owner) bool { return set.Failing })
	list.expect(failing || d.Paused || !s.Condition(objects.ReplicaFailureCondition).IsReplicaFailure(), "condition ReplicaFailure is True, but no ReplicaSet has this condition")
	list.expect(!failing || d.Paused || s.Condition(objects.ReplicaFailureCondition).IsReplicaFailure(), "condition ReplicaFailure is not True, although one of its ReplicaSets has this condition")
	switch {
	case d.ProgressDeadline == 0:
		list.expect(s.Condition(objects.ProgressingCondition) == objects.Condition{}, "condition Progressing is %s, expected no such condition without progressDeadlineSeconds", describeCondition(s.Condition(objects.ProgressingCondition)))
	case d.Paused:
		// A user may pause a Deployment that has missed its deadline. The reason then remains.
		reason := s.Condition(objects.ProgressingCondition).Reason
		list.expect(reason == objects.DeploymentPausedReason || reason == objects.DeadlineExceededReason,
			"the Deployment is paused, but the reason of condition Progressing is %q, expected %s or %s", reason, objects.DeploymentPausedReason, objects.DeadlineExceededReason)
	case len(current) == 1 && deploymentComplete(d, sets, current[0]):
		list.expectCondition(s, objects.Condition{Type: objects.ProgressingCondition, Status: "True", Reason: objects.NewReplicaSetAvailableReason})
	case len(current) > 0 && s.Condition(objects.ProgressingCondition) == objects.Condition{}:
		list.expect(false, "condition Progressing is absent, expected one because progressDeadlineSeconds is set")
	default:
		list.expect(!progressOverdue(d, now), "the reason of condition Progressing has been %s since %s, expected %s after the deadline of %v",
			s.Condition(objects.ProgressingCondition).Reason, s.ConditionWithTime(objects.ProgressingCondition).LastUpdateTime.Format(time.TimeOnly), objects.DeadlineExceededReason, d.ProgressDeadline)
	}
}

// deadlineGrace is how long after a missed progress deadline the controller may take to set the
// reason ProgressDeadlineExceeded.
const deadlineGrace = 3 * time.Second

// progressOverdue reports whether a Deployment missed its progress deadline, and the controller
// did not report this within deadlineGrace (3 s).
//
// It returns false if the condition Progressing is absent. It also returns false if the
// condition's reason is ProgressDeadlineExceeded, NewReplicaSetAvailable or
// ReplicaSetCreateError.
func progressOverdue(d *objects.Deployment, now time.Time) bool {
	c := d.Status.ConditionWithTime(objects.ProgressingCondition)
	switch c.Reason {
	case "", objects.DeadlineExceededReason, objects.NewReplicaSetAvailableReason, objects.ReplicaSetCreateErrorReason:
		return false
	}
	return c.LastUpdateTime.Add(d.ProgressDeadline + deadlineGrace).Before(now)
}

// expectCondition adds a difference if the status of the Deployment does not contain the condition
// want. The type, the status and the reason of the two conditions must be equal.
func (list *pendings) expectCondition(s *objects.DeploymentStatus, want objects.Condition) {
	got := s.Condition(want.Type)
	list.expect(got == want, "condition %s is %s, expected %s", want.Type, describeCondition(got), describeCondition(want))
}

// describeCondition formats a condition for the evidence of a violation, such as "True
// (NewReplicaSetAvailable)". A missing condition is "absent".
func describeCondition(c objects.Condition) string {
	if c == (objects.Condition{}) {
		return "absent"
	}
	return c.Status + " (" + c.Reason + ")"
}
