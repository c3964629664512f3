package check

import (
	"maps"
	"slices"
	"time"
)

// pendingDeployment returns the differences between a Deployment and its ReplicaSets.
// pendingOwner returns those of the ReplicaSets' pods.
func (objects *objectSet) pendingDeployment(d *deployment, now time.Time) []pending {
	if d.terminating || d.selector.Empty() {
		return nil
	}
	list := pendings{subject: d.String()}
	sets := objects.replicaSetsOf(d)
	list.expect(d.status.ObservedGeneration == d.generation, "status.observedGeneration is %d at generation %d",
		d.status.ObservedGeneration, d.generation)
	list.expect(d.rollback < 0 || d.paused, "it has not been rolled back to revision %d, and the annotation is still there", d.rollback)
	for _, set := range objects.orphanReplicaSets(d) {
		list.expect(false, "its ReplicaSet %s is nobody's, and to be adopted", set.Name)
	}
	current, _ := d.splitByTemplate(sets)
	if d.paused {
		list.expect(!d.scalingPending(sets), "paused, and its ReplicaSets are not scaled to %d replicas", d.replicas)
	} else {
		objects.pendingRollout(d, &list, sets)
	}
	d.pendingStatus(&list, sets, current, now)
	return list.all
}

func (objects *objectSet) pendingRollout(d *deployment, list *pendings, sets []*owner) {
	current, old := d.splitByTemplate(sets)
	if len(current) != 1 {
		list.expect(false, "%d ReplicaSets with its template, expected one", len(current))
		return
	}
	now := current[0]
	awaited := !objects.canScale(d, sets, now, old)
	list.add(now.replicas == d.replicas, awaited, "its ReplicaSet %s asks for %d of %d replicas", now.Name, now.replicas, d.replicas)
	for _, set := range old {
		list.add(set.replicas == 0, awaited, "its old ReplicaSet %s still asks for %d replicas", set.Name, set.replicas)
		list.expect(set.revision < now.revision, "its ReplicaSet %s has revision %d, the old %s has %d",
			now.Name, now.revision, set.Name, set.revision)
	}
	list.expect(now.minReady == d.minReady, "its ReplicaSet %s has minReadySeconds %d, expected %d",
		now.Name, now.minReady/time.Second, d.minReady/time.Second)
	for _, key := range slices.Sorted(maps.Keys(d.annotations)) {
		list.expect(now.annotations[key] == d.annotations[key], "its ReplicaSet %s has the annotation %s=%q, expected %q",
			now.Name, key, now.annotations[key], d.annotations[key])
	}
	if d.complete(sets, now) {
		list.expect(len(old) <= d.historyLimit, "%d old ReplicaSets, expected at most %d", len(old), d.historyLimit)
	}
}

// canScale reports whether the strategy allows the controller to scale a ReplicaSet now.
// Otherwise the rollout waits for pods.
func (objects *objectSet) canScale(d *deployment, sets []*owner, now *owner, old []*owner) bool {
	if d.recreate {
		return sumOf(old, specReplicas) > 0 || objects.firstPod(old, func(*pod) bool { return true }) == nil
	}
	return d.canRoll(sets, now, old)
}

// pendingStatus compares the status and the conditions with the ReplicaSets.
func (d *deployment) pendingStatus(list *pendings, sets, current []*owner, now time.Time) {
	s := &d.status
	specs, ready := sumOf(sets, specReplicas), sumOf(sets, availableReplicas)
	for _, field := range []struct {
		name       string
		said, true int
	}{
		{"replicas", s.Replicas, sumOf(sets, statusReplicas)},
		{"updatedReplicas", s.UpdatedReplicas, sumOf(current, statusReplicas)},
		{"readyReplicas", s.ReadyReplicas, sumOf(sets, func(set *owner) int { return set.status.ReadyReplicas })},
		{"availableReplicas", s.AvailableReplicas, ready},
		{"unavailableReplicas", s.UnavailableReplicas, max(0, specs-ready)},
	} {
		list.expect(field.said == field.true, "status.%s is %d, by its ReplicaSets %d", field.name, field.said, field.true)
	}
	list.expectCondition(s, availability(ready >= d.minAvailable()))
	failing := slices.ContainsFunc(sets, func(set *owner) bool { return set.failing })
	list.expect(failing || d.paused || !s.condition("ReplicaFailure").failure(), "the condition ReplicaFailure is still there, and none of its ReplicaSets has it")
	switch {
	case d.deadline == 0:
		list.expect(s.condition("Progressing") == deploymentCondition{}, "it has no deadline, and the condition %v", s.condition("Progressing"))
	case d.paused:
		reason := s.condition("Progressing").Reason // a missed deadline stays reported while the Deployment is paused
		list.expect(reason == deploymentPaused || reason == deadlineExceeded,
			"paused, and the condition Progressing is %v", s.condition("Progressing"))
	case len(current) == 1 && d.complete(sets, current[0]):
		list.expectCondition(s, deploymentCondition{"Progressing", "True", newReplicaSetAvailable})
	default:
		list.expect(!d.overdue(now), "the condition Progressing is %s, renewed at %s, and its deadline of %v is long past",
			s.condition("Progressing").Reason, s.conditionWithTime("Progressing").LastUpdateTime.Format(time.TimeOnly), d.deadline)
	}
}

// deadlineGrace is how long after a deadline the controller may report that it was
// missed.
const deadlineGrace = 10 * time.Second

// overdue reports whether the progress deadline passed more than deadlineGrace ago, and
// the controller has not reported it. ReplicaSetCreateError has precedence over a missed
// deadline.
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
	list.expect(got == want, "the condition %s is %s (%s), expected %s (%s)", want.Type, got.Status, got.Reason, want.Status, want.Reason)
}
