package check

import (
	"maps"
	"slices"
	"time"
)

// pendingDeployment returns the differences between a Deployment and its ReplicaSets. For
// the pods of the ReplicaSets, pendingOwner returns the differences.
func (objects *objectSet) pendingDeployment(d *deployment, now time.Time) []pending {
	if d.terminating || d.selector.Empty() {
		return nil
	}
	list := pendings{subject: d.String()}
	sets := objects.replicaSetsOf(d)
	list.expect(d.status.ObservedGeneration == d.generation, "status.observedGeneration is %d, expected %d",
		d.status.ObservedGeneration, d.generation)
	list.expect(d.rollback < 0 || d.paused, "annotation %s=%d is set, expected a rollback that removes it", rollbackAnnotation, d.rollback)
	for _, set := range objects.orphanReplicaSets(d) {
		list.expect(false, "ReplicaSet %s matches spec.selector and has no controllerRef, expected its adoption", set.Name)
	}
	current, _ := d.splitByTemplate(sets)
	if d.paused {
		list.expect(!d.scalingPending(sets), "paused, and the ReplicaSets are not scaled to spec.replicas %d", d.replicas)
	} else {
		objects.pendingRollout(d, &list, sets)
	}
	d.pendingStatus(&list, sets, current, now)
	return list.all
}

func (objects *objectSet) pendingRollout(d *deployment, list *pendings, sets []*owner) {
	current, old := d.splitByTemplate(sets)
	if len(current) != 1 {
		list.expect(false, "%d ReplicaSets have its spec.template, expected 1", len(current))
		return
	}
	newSet := current[0]
	awaited := !objects.canScale(d, sets, newSet, old)
	list.add(newSet.replicas == d.replicas, awaited, "ReplicaSet %s: spec.replicas is %d, expected %d", newSet.Name, newSet.replicas, d.replicas)
	for _, set := range old {
		list.add(set.replicas == 0, awaited, "old ReplicaSet %s: spec.replicas is %d, expected 0", set.Name, set.replicas)
		list.expect(set.revision < newSet.revision, "ReplicaSet %s has revision %d, expected more than revision %d of old ReplicaSet %s",
			newSet.Name, newSet.revision, set.revision, set.Name)
	}
	list.expect(newSet.minReady == d.minReady, "ReplicaSet %s: spec.minReadySeconds is %d, expected %d",
		newSet.Name, newSet.minReady/time.Second, d.minReady/time.Second)
	for _, key := range slices.Sorted(maps.Keys(d.annotations)) {
		list.expect(newSet.annotations[key] == d.annotations[key], "ReplicaSet %s: annotation %s is %q, expected %q",
			newSet.Name, key, newSet.annotations[key], d.annotations[key])
	}
	if d.complete(sets, newSet) {
		list.expect(len(old) <= d.historyLimit, "%d old ReplicaSets, expected at most %d (revisionHistoryLimit)", len(old), d.historyLimit)
	}
}

// canScale reports whether the strategy allows the controller to scale a ReplicaSet now.
// Otherwise the controller has to wait until pods become available or terminate.
func (objects *objectSet) canScale(d *deployment, sets []*owner, newSet *owner, old []*owner) bool {
	if d.recreate {
		return sumOf(old, specReplicas) > 0 || objects.firstPod(old, func(*pod) bool { return true }) == nil
	}
	return d.canRoll(sets, newSet, old)
}

// pendingStatus compares the status and the conditions with the ReplicaSets.
func (d *deployment) pendingStatus(list *pendings, sets, current []*owner, now time.Time) {
	s := &d.status
	specs, ready := sumOf(sets, specReplicas), sumOf(sets, availableReplicas)
	for _, field := range []struct {
		name            string
		found, expected int
	}{
		{"replicas", s.Replicas, sumOf(sets, statusReplicas)},
		{"updatedReplicas", s.UpdatedReplicas, sumOf(current, statusReplicas)},
		{"readyReplicas", s.ReadyReplicas, sumOf(sets, func(set *owner) int { return set.status.ReadyReplicas })},
		{"availableReplicas", s.AvailableReplicas, ready},
		{"unavailableReplicas", s.UnavailableReplicas, max(0, specs-ready)},
	} {
		list.expect(field.found == field.expected, "status.%s is %d, expected %d from its ReplicaSets", field.name, field.found, field.expected)
	}
	list.expectCondition(s, availability(ready >= d.minAvailable()))
	failing := slices.ContainsFunc(sets, func(set *owner) bool { return set.failing })
	list.expect(failing || d.paused || !s.condition("ReplicaFailure").failure(), "condition ReplicaFailure is True, expected none: no ReplicaSet has it")
	switch {
	case d.deadline == 0:
		list.expect(s.condition("Progressing") == deploymentCondition{}, "condition Progressing is %s, expected none without progressDeadlineSeconds", s.condition("Progressing").describe())
	case d.paused:
		reason := s.condition("Progressing").Reason // a missed deadline stays reported while the Deployment is paused
		list.expect(reason == deploymentPaused || reason == deadlineExceeded,
			"paused, and the reason of condition Progressing is %q, expected %s or %s", reason, deploymentPaused, deadlineExceeded)
	case len(current) == 1 && d.complete(sets, current[0]):
		list.expectCondition(s, deploymentCondition{"Progressing", "True", newReplicaSetAvailable})
	default:
		list.expect(!d.overdue(now), "the reason of condition Progressing is %s since %s, expected %s after the deadline of %v",
			s.condition("Progressing").Reason, s.conditionWithTime("Progressing").LastUpdateTime.Format(time.TimeOnly), deadlineExceeded, d.deadline)
	}
}

// deadlineGrace is the time after a progress deadline in which the controller must report
// that the rollout missed it.
const deadlineGrace = 10 * time.Second

// overdue reports whether the progress deadline passed more than deadlineGrace ago, and the
// controller has not reported it. If the status has the reason ReplicaSetCreateError, the
// controller need not report a missed deadline.
func (d *deployment) overdue(now time.Time) bool {
	c := d.status.conditionWithTime("Progressing")
	switch c.Reason {
	case "", deadlineExceeded, newReplicaSetAvailable, replicaSetCreateError:
		return false
	}
	return c.LastUpdateTime.Add(d.deadline + deadlineGrace).Before(now)
}

func (list *pendings) expectCondition(s *deploymentStatus, want deploymentCondition) {
	got := s.condition(want.Type)
	list.expect(got == want, "condition %s is %s, expected %s", want.Type, got.describe(), want.describe())
}
