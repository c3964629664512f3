package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// deploymentStatusCheck examines each write of the status of a Deployment.
//
// It skips a status write that is not based on the cached version of the Deployment. It
// also skips a process that has not listed ReplicaSets yet.
var deploymentStatusCheck = Check{
	ID:               "deployment-status",
	Guarantee:        "The status of a Deployment matches a cached version of the Deployment and its ReplicaSets that the controller may have acted on. The controller reports ProgressDeadlineExceeded soon after the deadline, never before it, and copies ReplicaFailure from its ReplicaSets.",
	Contract:         "Deployment 13, 16, 17",
	Property:         Safety,
	AllowedBehaviors: []string{"missed-deadline-report", "client-rate-limit", "observed-generation-order", "no-deadline-after-completion", "undeletable-pods", "paused-process"},
	New:              newDeploymentStatusChecker,
}

// deploymentStatusChecker compares the written status with the cached versions of the
// Deployment and its ReplicaSets.
//
// It skips counts that are equal to those in the version on which the write is based. A
// controller writes such counts when it changes only a condition or the collisionCount.
type deploymentStatusChecker struct{ findings }

func newDeploymentStatusChecker(Settings) Checker { return &deploymentStatusChecker{} }

func (checker *deploymentStatusChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != deploymentResource || r.Request.Subresource != "status" || r.Request.Object == nil {
		return
	}
	from := recentlyDecoded[deployment](m.decoder, c.rollout.uid, r.Request.Object.Version)
	written, err := m.decoder.decodeDeployment(r.Request.Object)
	if from == nil || err != nil || len(c.rollout.replicaSets) == 0 || c.process.view.reachedVersion[replicaSetResource] == 0 {
		return // the API server rejects a status that cannot be decoded
	}
	if c.rollout.deployments[0].value != from {
		return // the API server rejects a write from an older version
	}
	checker.exercised++
	cached := c.rollout.deployments[0]
	write := &statusWrite{
		rollout: c.rollout, from: from, written: written,
		start: m.start.Time, now: m.start.Time.Add(m.now), processNow: m.start.Time.Add(m.processTime),
		earliestDecision: m.start.Time.Add(cached.since), // the decision may be later if the process was paused
		allStatesKnown:   c.rollout.replicaSets[0].since <= cached.since && c.rollout.ownershipClear(cached.since, m.processTime),
	}
	for _, wrong := range write.check() {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s wrote %s", from, c.process.name, wrong.found), wrong.expected)
		})
	}
}

// statusWrite is a write of the status of a Deployment.
type statusWrite struct {
	rollout          *rolloutState
	from             *deployment // the version on which the write is based
	written          *deployment
	start            time.Time // of the history
	now              time.Time
	processNow       time.Time // now, by the clock of the process
	earliestDecision time.Time // the earliest time of the decision to write it
	// allStatesKnown is true if all cached states of the ReplicaSets since earliestDecision
	// are known.
	allStatesKnown bool
	mismatches     []mismatch
}

// mismatch describes a field of the written status that no cached version justifies.
type mismatch struct{ found, expected string }

// expect records a mismatch unless ok.
func (write *statusWrite) expect(ok bool, found, expected string) {
	if !ok {
		write.mismatches = append(write.mismatches, mismatch{found, expected})
	}
}

func (write *statusWrite) check() []mismatch {
	before, after := &write.from.status, &write.written.status
	write.expect(after.ObservedGeneration >= before.ObservedGeneration && after.ObservedGeneration <= write.from.generation,
		fmt.Sprintf("status.observedGeneration %d", after.ObservedGeneration),
		fmt.Sprintf("%d (before the write) to %d (metadata.generation)", before.ObservedGeneration, write.from.generation))
	if write.allStatesKnown && after.counts() != before.counts() {
		for _, field := range write.countBounds() {
			write.expect(field.written >= field.low && field.written <= field.high, fmt.Sprintf("status.%s %d", field.field, field.written),
				rangeText(field.low, field.high)+" from its cached ReplicaSets")
		}
	}
	if after.counts() != before.counts() || after.condition("Available") != before.condition("Available") {
		write.checkAvailable()
	}
	write.checkReplicaFailure()
	write.checkProgressing()
	return write.mismatches
}

// counts returns the five replica counts of a status.
func (s *deploymentStatus) counts() [5]int {
	return [5]int{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas}
}

// countBounds returns each count of the written status with its bounds.
//
// The bounds combine the recent states of each ReplicaSet independently. One sync writes
// ReplicaSets one after another, and reads some of them again in between.
func (write *statusWrite) countBounds() []fieldBounds {
	s := &write.written.status
	specs := write.rollout.sumRange(specReplicas)
	ready := write.rollout.sumRange(availableReplicas)
	bounded := func(field string, count int, of func(*owner) int) fieldBounds {
		sum := write.rollout.sumRange(of)
		return fieldBounds{field, count, sum.low, sum.high}
	}
	updated := func(set *owner) int {
		if set.template.same(write.written.template) {
			return statusReplicas(set)
		}
		return 0
	}
	all := []fieldBounds{
		bounded("replicas", s.Replicas, statusReplicas),
		bounded("updatedReplicas", s.UpdatedReplicas, updated),
		bounded("readyReplicas", s.ReadyReplicas, func(set *owner) int { return set.status.ReadyReplicas }),
		bounded("availableReplicas", s.AvailableReplicas, availableReplicas),
		{"unavailableReplicas", s.UnavailableReplicas, max(0, specs.low-ready.high), max(0, specs.high-ready.low)},
	}
	if current, _ := write.written.splitByTemplate(write.rollout.replicaSets[len(write.rollout.replicaSets)-1].value.withOwnWrites); len(current) > 1 {
		all[1].low = 0 // of several new ReplicaSets, only the oldest counts as updated
	}
	return all
}

// sumRange returns the bounds of a sum over all ReplicaSets. Each ReplicaSet may be in any
// of its recent states.
func (r *rolloutState) sumRange(of func(*owner) int) (sum valueRange) {
	each := map[string]valueRange{}
	for i, state := range r.replicaSets {
		for _, sets := range [][]*owner{state.value.cached, state.value.withOwnWrites} {
			for _, set := range sets {
				e, known := each[set.Name]
				if !known && i > 0 {
					e.include(0) // the ReplicaSet did not exist in an earlier state
				}
				e.include(of(set))
				each[set.Name] = e
			}
		}
		for name, e := range each {
			if findByName(state.value.cached, name) == nil { // the ReplicaSet did not exist in this state
				e.include(0)
				each[name] = e
			}
		}
	}
	for _, e := range each {
		sum.low, sum.high = sum.low+e.low, sum.high+e.high
	}
	return sum
}

// checkReplicaFailure checks the condition ReplicaFailure.
//
// The status may have the condition only if a ReplicaSet has it. A sync that estimates
// progress must set the condition if one ReplicaSet had it in all recent versions. Other
// syncs leave the condition unchanged.
func (write *statusWrite) checkReplicaFailure() {
	after := write.written.status.condition("ReplicaFailure")
	if write.allStatesKnown && after.failure() && !write.from.status.condition("ReplicaFailure").failure() {
		write.expect(slices.ContainsFunc(write.rollout.replicaSets, func(s cachedVersion[replicaSetsState]) bool {
			return slices.ContainsFunc(s.value.cached, hasReplicaFailure)
		}),
			"condition ReplicaFailure", "no condition ReplicaFailure, because none of its ReplicaSets has it")
	}
	if write.estimatesProgress() && write.rollout.ownershipClear(write.rollout.from, write.processNow.Sub(write.start)) && slices.ContainsFunc(write.rollout.replicaSets[0].value.cached, write.failsThroughout) {
		write.expect(after.failure(), fmt.Sprintf("condition Progressing (%s) without condition ReplicaFailure", write.written.status.condition("Progressing").Reason),
			"condition ReplicaFailure, because one of its ReplicaSets has it")
	}
}

func hasReplicaFailure(set *owner) bool { return set.failing }

// failsThroughout reports whether a ReplicaSet has the condition ReplicaFailure in every
// cached version that the process may have acted on.
func (write *statusWrite) failsThroughout(set *owner) bool {
	in := func(sets []*owner) bool {
		found := findByName(sets, set.Name)
		return found != nil && found.failing
	}
	return every(write.rollout.replicaSets, func(s cachedVersion[replicaSetsState]) bool { return in(s.value.cached) && in(s.value.withOwnWrites) })
}

// estimatesProgress reports whether the status comes from a sync that estimated progress.
//
// Only such a sync reads the condition ReplicaFailure of all ReplicaSets. The states of the
// ReplicaSets at the time of the decision must be known, because the client may have
// delayed the write (allowed behavior client-rate-limit).
func (write *statusWrite) estimatesProgress() bool {
	after := write.written.status.conditionWithTime("Progressing")
	earliest := write.start.Add(write.rollout.replicaSets[0].since + lag)
	if after == write.from.status.conditionWithTime("Progressing") || after.LastUpdateTime.Before(earliest) || after.LastUpdateTime.After(write.processNow) {
		return false
	}
	return after.Reason == replicaSetUpdated || after.Reason == newReplicaSetAvailable || after.Reason == deadlineExceeded
}

// checkAvailable compares the condition Available with availableReplicas.
func (write *statusWrite) checkAvailable() {
	enough := write.written.status.AvailableReplicas >= write.written.minAvailable()
	want := availability(enough)
	after := write.written.status.condition("Available")
	write.expect(after == want, fmt.Sprintf("condition Available=%s (%s) with status.availableReplicas %d", after.Status, after.Reason, write.written.status.AvailableReplicas),
		fmt.Sprintf("condition Available=%s (%s), because at least %d replicas must be available", want.Status, want.Reason, write.written.minAvailable()))
}

// progressStatus maps each reason of the condition Progressing to its status.
var progressStatus = map[string]string{
	"NewReplicaSetCreated": "True",
	"FoundNewReplicaSet":   "True",
	replicaSetUpdated:      "True",
	newReplicaSetAvailable: "True",
	replicaSetCreateError:  "False",
	deadlineExceeded:       "False",
	deploymentPaused:       "Unknown",
	deploymentResumed:      "Unknown",
}

// checkProgressing checks the condition Progressing if the write changes it.
func (write *statusWrite) checkProgressing() {
	write.checkOverdue()
	before, after := write.from.status.conditionWithTime("Progressing"), write.written.status.conditionWithTime("Progressing")
	if after == before || after == (deploymentConditionWithTime{}) {
		return
	}
	found := fmt.Sprintf("condition Progressing=%s (%s)", after.Status, after.Reason)
	write.expect(write.written.deadline > 0, found, "no condition Progressing, because progressDeadlineSeconds is not set")
	status, valid := progressStatus[after.Reason]
	write.expect(valid && status == after.Status, found, "a valid reason with its status")
	if after.Reason != before.Reason {
		write.expect(!after.LastUpdateTime.Before(write.earliestDecision.Truncate(time.Second).Add(-tolerance)),
			fmt.Sprintf("%s with lastUpdateTime %s", found, after.LastUpdateTime.Format(time.TimeOnly)), "the time at which the reason changed")
	}
	switch after.Reason {
	case newReplicaSetAvailable:
		write.expect(write.complete(), found, "status.replicas, updatedReplicas and availableReplicas equal to spec.replicas")
	case replicaSetUpdated:
		write.expect(write.progressed(), found+" with a new lastUpdateTime", "a count that shows progress since the last status")
	case deadlineExceeded:
		write.checkDeadline(found, before)
	case deploymentPaused:
		write.expect(write.written.paused, found, "this reason only while spec.paused is true")
	case deploymentResumed:
		write.expect(!write.written.paused && before.Reason == deploymentPaused, found, "this reason only after a pause")
	}
}

// checkDeadline checks a new ProgressDeadlineExceeded.
//
// The deadline must have passed since the last progress. The rollout must be neither paused
// nor complete. It must not have been complete before, because a complete rollout never
// misses its deadline later (allowed behavior no-deadline-after-completion).
func (write *statusWrite) checkDeadline(found string, before deploymentConditionWithTime) {
	due := before.LastUpdateTime.Add(write.written.deadline)
	write.expect(before != deploymentConditionWithTime{} && !write.now.Add(tolerance).Before(due), found,
		fmt.Sprintf("this reason only after %s", due.Format(time.TimeOnly)))
	write.expect(before.Reason != newReplicaSetAvailable, found, "another reason first, because the last rollout was complete")
	write.expect(!write.written.paused, found, "no deadline while spec.paused is true")
	write.expect(!write.complete(), found, "another reason, because the rollout is complete")
	write.expect(!write.couldHaveScaled(), found, "progress, because the rolling update could have scaled a ReplicaSet")
}

// couldHaveScaled reports whether the rolling update could have scaled a ReplicaSet, but
// did not.
//
// This must hold in every state of the ReplicaSets that the cache contained within 2 * lag
// before the write.
func (write *statusWrite) couldHaveScaled() bool {
	d, at := write.written, write.processNow.Sub(write.start)
	if d.recreate || d.paused || write.processNow.Sub(write.earliestDecision) < deadlineReportMax || write.rollout.mayBeDelayed(at) || !write.rollout.ownershipClear(at-2*lag, at) {
		return false
	}
	states := keepSince(write.rollout.replicaSets, at-2*lag)
	return states[0].since <= at-2*lag && every(states, func(s cachedVersion[replicaSetsState]) bool {
		return every([][]*owner{s.value.cached, s.value.withOwnWrites}, func(sets []*owner) bool {
			current, old := d.splitByTemplate(sets)
			return len(current) == 1 && !slices.ContainsFunc(old, hasExcessAvailable) && d.canRoll(sets, current[0], old)
		})
	})
}

// hasExcessAvailable reports whether a ReplicaSet has more available pods than
// spec.replicas.
//
// This happens when its pods cannot be deleted. Upstream then scales no old ReplicaSet down
// (allowed behavior undeletable-pods).
func hasExcessAvailable(set *owner) bool {
	return set.replicas > 0 && set.status.AvailableReplicas > set.replicas
}

// deadlineReportMax is the maximum time between a missed deadline and the status write that
// reports it.
const deadlineReportMax = 3 * lag

// checkOverdue checks that the process has reported a missed deadline in time.
//
// It applies only if the process cached this version of the Deployment before the deadline,
// and has written no status since. It skips a terminating Deployment, for which the
// controller writes only counts.
func (write *statusWrite) checkOverdue() {
	c := write.from.status.conditionWithTime("Progressing")
	switch c.Reason {
	case "", deadlineExceeded, newReplicaSetAvailable, replicaSetCreateError, deploymentPaused:
		return
	}
	due := c.LastUpdateTime.Add(write.written.deadline)
	late := write.processNow.Sub(due)
	if write.rollout.statusWrittenAt >= write.rollout.cachedSince(write.from) {
		return // a status written since then may already report it
	}
	if write.written.deadline == 0 || write.from.paused || write.from.terminating || write.earliestDecision.After(due) || late <= deadlineReportMax || write.rollout.mayBeDelayed(due.Sub(write.start)) {
		return
	}
	write.expect(write.written.status.condition("Progressing").Reason == deadlineExceeded,
		fmt.Sprintf("condition Progressing (%s) %s after the progress deadline of %s", write.written.status.condition("Progressing").Reason, seconds(late), write.written.deadline),
		"reason "+deadlineExceeded)
}

// mayBeDelayed reports whether the process may have had a reason not to report a missed
// deadline.
//
// There are two such reasons. A call for the Deployment failed or took long after the
// deadline. Or a scaling event was pending, which a sync handles first.
func (r *rolloutState) mayBeDelayed(due time.Duration) bool {
	return r.delayedAt >= due-decisionWindowMax || slices.ContainsFunc(r.deployments, func(d cachedVersion[*deployment]) bool {
		return slices.ContainsFunc(r.replicaSets, func(s cachedVersion[replicaSetsState]) bool {
			return d.value.scalingPending(s.value.cached) || d.value.scalingPending(s.value.withOwnWrites)
		})
	})
}

// cachedSince returns the time at which a version of the Deployment arrived in the cache.
//
// It returns 0 if the model no longer has that time.
func (r *rolloutState) cachedSince(version *deployment) time.Duration {
	for _, d := range r.deployments {
		if d.value.Version == version.Version {
			return d.since
		}
	}
	return 0
}

// complete reports whether the rollout is complete according to the written counts.
func (write *statusWrite) complete() bool {
	s, replicas := &write.written.status, write.written.replicas
	return s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas
}

// progressed reports whether the written counts show progress since the version on which
// the write is based.
func (write *statusWrite) progressed() bool {
	before, after := &write.from.status, &write.written.status
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas ||
		after.AvailableReplicas > before.AvailableReplicas
}
