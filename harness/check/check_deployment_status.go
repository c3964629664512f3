package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// deploymentStatusCheck demands that a written Deployment status matches the Deployment and its
// ReplicaSets in the controller's cache. It examines each write of a Deployment's status.
//
// The check skips two kinds of writes:
//
//   - a write whose resourceVersion is not that of the cached Deployment, because the API server
//     rejects such a write
//   - any write of a process that has not listed ReplicaSets yet
var deploymentStatusCheck = Check{
	ID:               "deployment-status",
	Guarantee:        "The status of a Deployment matches a cached version of the Deployment and its ReplicaSets that the controller may have acted on. The controller reports ProgressDeadlineExceeded soon after the deadline, never before it, and copies ReplicaFailure from its ReplicaSets. It changes the lastTransitionTime of a condition only together with its status. It writes the status after a failed create of a ReplicaSet, before the next create.",
	Contract:         "Deployment 13, 16, 17",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "The subject writes the status of a Deployment, based on the version in its cache.",
	AllowedBehaviors: []string{"missed-deadline-report", "client-rate-limit", "observed-generation-order", "no-deadline-after-completion", "undeletable-pods", "paused-process"},
	New:              newDeploymentStatusChecker,
}

// deploymentStatusChecker compares each written Deployment status with the cached versions of
// the Deployment and its ReplicaSets.
//
// The checker examines the replica counts only if the write changes at least one of them. A
// write that changes only a condition or collisionCount repeats the counts of the last status.
//
// It also reports a process that tries again to create a ReplicaSet, and has not written the status
// since the first failure.
type deploymentStatusChecker struct {
	findings
	failed failedCreates
}

func newDeploymentStatusChecker(Settings) Checker {
	return &deploymentStatusChecker{failed: failedCreates{}}
}

func (checker *deploymentStatusChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if checker.failed.observe(m, r) {
		checker.addViolation(func() Evidence {
			return c.scaling.evidence(m, fmt.Sprintf("creates ReplicaSet %s, and has not written the status after a failed create", c.scaling.name),
				"a status whose condition Progressing has the reason "+objects.ReplicaSetCreateErrorReason)
		})
	}
	if c == nil || c.rollout == nil || r.Request.Resource != objects.DeploymentResource || r.Request.Subresource != "status" || r.Request.Object == nil {
		return
	}
	from := objects.Cached[objects.Deployment](m.decoder, c.rollout.uid, r.Request.Object.Version)
	written, err := m.decoder.DecodeDeployment(r.Request.Object)
	if from == nil || err != nil || len(c.rollout.replicaSets) == 0 || c.process.view.reachedVersion[objects.ReplicaSetResource] == 0 {
		return // the model has no cached state, or the API server rejects a status that cannot be decoded
	}
	if c.rollout.deployments[0].value != from {
		return // the API server rejects a write that is based on an older version
	}
	checker.exercised++
	cached := c.rollout.deployments[0]
	write := &statusWrite{
		rollout: c.rollout, from: from, written: written,
		start: m.start.Time, now: m.start.Time.Add(m.now), processNow: m.start.Time.Add(m.processTime),
		stalledSince: func(t time.Time) time.Duration {
			return m.stalls.since(t.Sub(m.start.Time), machine, c.process.name)
		},
		// The process may have decided later than this, for example after a pause.
		earliestDecision: m.start.Time.Add(cached.since),
		allStatesKnown:   c.rollout.replicaSets[0].since <= cached.since && c.rollout.ownershipClear(cached.since, m.processTime),
	}
	for _, wrong := range write.check() {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s wrote %s", from, c.process.name, wrong.found), wrong.expected)
		})
	}
}

// statusWrite is one write of a Deployment's status, and the controller's cached state at that
// time. The checker compares the two.
type statusWrite struct {
	rollout    *rolloutState       // the cached versions of the Deployment and its ReplicaSets
	from       *objects.Deployment // the cached version of the Deployment whose resourceVersion the write contains
	written    *objects.Deployment // the Deployment as the process wrote it
	start      time.Time           // the start of the history
	now        time.Time           // when the write was sent
	processNow time.Time           // when the write was sent, on the clock of the process (Model.processTime)
	// stalledSince returns for how long the process, or the whole machine, got no CPU time after
	// the given time.
	stalledSince func(time.Time) time.Duration
	// earliestDecision is when the process received the version of the Deployment on which the
	// write is based (statusWrite.from). The process cannot have decided on the write earlier.
	earliestDecision time.Time
	// allStatesKnown is true if the model has every version of the ReplicaSets that the cache
	// contained since earliestDecision. If it is false, the checker compares no replica counts. It
	// then also ignores a condition ReplicaFailure that the write adds.
	allStatesKnown bool
	mismatches     []mismatch // the wrong values that the checker has found so far
}

// mismatch describes a wrong value in the written status, such as found "status.replicas 5" and
// expected "3". No cached version justifies the found value.
type mismatch struct{ found, expected string }

// expect records a mismatch unless the parameter ok is true. The strings found and expected
// describe the two values for the report of a violation.
func (write *statusWrite) expect(ok bool, found, expected string) {
	if !ok {
		write.mismatches = append(write.mismatches, mismatch{found, expected})
	}
}

// check compares the written status with the cached state. It returns all mismatches, or nil if
// the status is right.
func (write *statusWrite) check() []mismatch {
	before, after := &write.from.Status, &write.written.Status
	write.expect(after.ObservedGeneration >= before.ObservedGeneration && after.ObservedGeneration <= write.from.Generation,
		fmt.Sprintf("status.observedGeneration %d", after.ObservedGeneration),
		fmt.Sprintf("a value from %d (before the write) to %d (metadata.generation)", before.ObservedGeneration, write.from.Generation))
	if write.allStatesKnown && statusCounts(after) != statusCounts(before) {
		for _, field := range write.countBounds() {
			write.expect(field.written >= field.low && field.written <= field.high, fmt.Sprintf("status.%s %d", field.field, field.written),
				rangeText(field.low, field.high)+", according to the cached ReplicaSets")
		}
	}
	if statusCounts(after) != statusCounts(before) || after.Condition(objects.AvailableCondition) != before.Condition(objects.AvailableCondition) {
		write.checkAvailable()
	}
	write.checkReplicaFailure()
	write.checkProgressing()
	write.checkTransitions()
	return write.mismatches
}

// checkTransitions compares the lastTransitionTime of each condition. It may change only together
// with the condition's status.
func (write *statusWrite) checkTransitions() {
	if write.from.Version < write.rollout.statusVersion {
		return // the status in the cache is not the last one that the process wrote
	}
	for _, after := range write.written.Status.Conditions {
		before := write.from.Status.ConditionWithTime(after.Type)
		write.expect(before.Status != after.Status || before.LastTransitionTime.Equal(after.LastTransitionTime),
			fmt.Sprintf("condition %s=%s with lastTransitionTime %s", after.Type, after.Status, after.LastTransitionTime.Format(time.TimeOnly)),
			fmt.Sprintf("%s, because the condition's status has not changed", before.LastTransitionTime.Format(time.TimeOnly)))
	}
}

// statusCounts returns the five replica counts of a status as an array. The operator == can then
// compare the counts of two statuses.
func statusCounts(s *objects.DeploymentStatus) [5]int {
	return [5]int{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas}
}

// countBounds returns each replica count of the written status, with the lowest and the highest
// allowed value.
//
// The cache may receive a new version of one ReplicaSet while a sync is running. The bounds
// therefore allow any recent version of each ReplicaSet, in any combination.
func (write *statusWrite) countBounds() []fieldBounds {
	s := &write.written.Status
	specs := write.rollout.sumRange(specReplicas)
	ready := write.rollout.sumRange(availableReplicas)
	bounded := func(field string, count int, of func(*objects.Owner) int) fieldBounds {
		sum := write.rollout.sumRange(of)
		return fieldBounds{field, count, sum.low, sum.high}
	}
	updated := func(set *objects.Owner) int {
		if set.Template.Same(write.written.Template) {
			return statusReplicas(set)
		}
		return 0
	}
	all := []fieldBounds{
		bounded("replicas", s.Replicas, statusReplicas),
		bounded("updatedReplicas", s.UpdatedReplicas, updated),
		bounded("readyReplicas", s.ReadyReplicas, func(set *objects.Owner) int { return set.Status.ReadyReplicas }),
		bounded("availableReplicas", s.AvailableReplicas, availableReplicas),
		{"unavailableReplicas", s.UnavailableReplicas, max(0, specs.low-ready.high), max(0, specs.high-ready.low)},
	}
	if current, _ := splitByTemplate(write.written, write.rollout.replicaSets[len(write.rollout.replicaSets)-1].value.withOwnWrites); len(current) > 1 {
		all[1].low = 0 // of several ReplicaSets with the new template, updatedReplicas counts only the oldest
	}
	return all
}

// sumRange returns the lowest and the highest possible sum of a replica count over all ReplicaSets
// of the Deployment. The parameter count is a function that reads this replica count from one
// ReplicaSet.
//
// Each ReplicaSet may have any of its recent versions, in any combination with the versions of
// the other ReplicaSets.
func (r *rolloutState) sumRange(count func(*objects.Owner) int) (sum valueRange) {
	each := map[string]valueRange{}
	for i, state := range r.replicaSets {
		for _, sets := range [][]*objects.Owner{state.value.cached, state.value.withOwnWrites} {
			for _, set := range sets {
				e, known := each[set.Name]
				if !known && i > 0 {
					e.include(0) // the ReplicaSet did not exist in an earlier state
				}
				e.include(count(set))
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

// checkReplicaFailure reports a wrong condition ReplicaFailure in the Deployment status.
//
// The controller copies this condition from its ReplicaSets. A write may add the condition only if
// one of the ReplicaSets had it in some recent version, with the same reason. A write must contain
// the condition if one of the ReplicaSets had it in all recent versions. This second rule applies
// only if the sync has evaluated the rollout's progress. Any other sync leaves the condition
// unchanged.
func (write *statusWrite) checkReplicaFailure() {
	after := write.written.Status.Condition(objects.ReplicaFailureCondition)
	if write.allStatesKnown && after.IsReplicaFailure() && !write.from.Status.Condition(objects.ReplicaFailureCondition).IsReplicaFailure() {
		same := func(c objects.ConditionWithTime) bool { return c.IsReplicaFailure() && c.Reason == after.Reason }
		write.expect(slices.ContainsFunc(write.rollout.replicaSets, func(s cachedVersion[replicaSetsState]) bool {
			return slices.ContainsFunc(s.value.cached, func(set *objects.Owner) bool { return slices.ContainsFunc(set.Conditions, same) })
		}),
			fmt.Sprintf("condition ReplicaFailure with the reason %q", after.Reason), "no such condition, because none of the cached ReplicaSets has it with this reason")
	}
	if write.estimatesProgress() && write.rollout.ownershipClear(write.rollout.from, write.processNow.Sub(write.start)) && slices.ContainsFunc(write.rollout.replicaSets[0].value.cached, write.failsThroughout) {
		write.expect(after.IsReplicaFailure(), fmt.Sprintf("condition Progressing (%s) without condition ReplicaFailure", write.written.Status.Condition(objects.ProgressingCondition).Reason),
			"condition ReplicaFailure, because one of the cached ReplicaSets has this condition")
	}
}

// onProcessClock converts a time of the run to the clock of the process that wrote the status.
//
// The times of cached versions are on this clock. It stops during stalls, in which the process gets
// no CPU time. The conversion takes only stalls into account. It ignores times for which a fault
// paused the process.
func (write *statusWrite) onProcessClock(t time.Time) time.Time {
	return t.Add(write.stalledSince(t) - write.stalledSince(write.start))
}

// failsThroughout reports whether a ReplicaSet has the condition ReplicaFailure in all recent
// states. A recent state is one on which the process may have acted.
func (write *statusWrite) failsThroughout(set *objects.Owner) bool {
	in := func(sets []*objects.Owner) bool {
		found := findByName(sets, set.Name)
		return found != nil && found.Failing
	}
	return every(write.rollout.replicaSets, func(s cachedVersion[replicaSetsState]) bool { return in(s.value.cached) && in(s.value.withOwnWrites) })
}

// estimatesProgress reports whether the sync that wrote the status certainly evaluated the
// rollout's progress. Only such a sync copies the condition ReplicaFailure from the ReplicaSets.
//
// A sync has evaluated the progress if it changes the condition Progressing to the reason
// ReplicaSetUpdated, NewReplicaSetAvailable or ProgressDeadlineExceeded.
//
// The result is also false if the client-side rate limit may have delayed the write (allowed
// behavior client-rate-limit). The model may then have forgotten the ReplicaSets that the sync
// read. This is possible if the condition's lastUpdateTime is less than lag (1 s) after the oldest
// stored ReplicaSet state.
func (write *statusWrite) estimatesProgress() bool {
	after := write.written.Status.ConditionWithTime(objects.ProgressingCondition)
	earliest := write.start.Add(write.rollout.replicaSets[0].since + lag)
	if after == write.from.Status.ConditionWithTime(objects.ProgressingCondition) || write.onProcessClock(after.LastUpdateTime).Before(earliest) || write.onProcessClock(after.LastUpdateTime).After(write.processNow) {
		return false
	}
	return after.Reason == objects.ReplicaSetUpdatedReason || after.Reason == objects.NewReplicaSetAvailableReason || after.Reason == objects.DeadlineExceededReason
}

// checkAvailable checks that the condition Available is True if and only if
// status.availableReplicas is at least replicas - maxUnavailable.
func (write *statusWrite) checkAvailable() {
	enough := write.written.Status.AvailableReplicas >= write.written.MinAvailable()
	want := availability(enough)
	after := write.written.Status.Condition(objects.AvailableCondition)
	write.expect(after == want, fmt.Sprintf("condition Available=%s (%s) with status.availableReplicas %d", after.Status, after.Reason, write.written.Status.AvailableReplicas),
		fmt.Sprintf("condition Available=%s (%s), because Available=True needs %d available replicas", want.Status, want.Reason, write.written.MinAvailable()))
}

// progressStatus maps each valid reason of the condition Progressing to the status that this
// reason requires.
var progressStatus = map[string]string{
	"NewReplicaSetCreated":               "True",
	"FoundNewReplicaSet":                 "True",
	objects.ReplicaSetUpdatedReason:      "True",
	objects.NewReplicaSetAvailableReason: "True",
	objects.ReplicaSetCreateErrorReason:  "False",
	objects.DeadlineExceededReason:       "False",
	objects.DeploymentPausedReason:       "Unknown",
	objects.DeploymentResumedReason:      "Unknown",
}

// checkProgressing checks the condition Progressing if the write changes this condition. It also
// calls checkOverdue, which demands a report of a missed progress deadline, and checkRefreshed, which
// demands a new lastUpdateTime after progress.
func (write *statusWrite) checkProgressing() {
	write.checkOverdue()
	write.checkRefreshed()
	before, after := write.from.Status.ConditionWithTime(objects.ProgressingCondition), write.written.Status.ConditionWithTime(objects.ProgressingCondition)
	if after == before || after == (objects.ConditionWithTime{}) {
		return
	}
	found := fmt.Sprintf("condition Progressing=%s (%s)", after.Status, after.Reason)
	write.expect(write.written.ProgressDeadline > 0, found, "no condition Progressing, because progressDeadlineSeconds is not set")
	status, valid := progressStatus[after.Reason]
	write.expect(valid && status == after.Status, found, "condition Progressing with a valid reason, and with the status that belongs to the reason")
	if after.Reason != before.Reason {
		write.expect(!after.LastUpdateTime.Before(write.earliestDecision.Truncate(time.Second).Add(-tolerance)),
			fmt.Sprintf("%s with lastUpdateTime %s", found, after.LastUpdateTime.Format(time.TimeOnly)), "a lastUpdateTime that is not before the change of the reason")
	}
	switch after.Reason {
	case objects.NewReplicaSetAvailableReason:
		write.expect(write.complete(), found, "reason NewReplicaSetAvailable only if status.replicas, updatedReplicas and availableReplicas equal spec.replicas")
	case objects.ReplicaSetUpdatedReason:
		write.expect(write.progressed(), found+" with a new lastUpdateTime", "a new lastUpdateTime only if a replica count shows progress since the last status")
	case objects.DeadlineExceededReason:
		write.checkDeadline(found, before)
	case objects.DeploymentPausedReason:
		write.expect(write.written.Paused, found, "reason DeploymentPaused only while spec.paused is true")
		write.expect(before.Reason != objects.DeadlineExceededReason, found, "reason ProgressDeadlineExceeded as before, because a pause does not undo that the deadline was missed")
	case objects.DeploymentResumedReason:
		write.expect(!write.written.Paused && before.Reason == objects.DeploymentPausedReason, found, "reason DeploymentResumed only if spec.paused is false and the last reason was DeploymentPaused")
	}
}

// checkRefreshed reports a status whose replica counts show progress, but whose condition Progressing
// has an old lastUpdateTime. The progress deadline counts from this time.
//
// It skips writes of syncs that may not have evaluated the progress. The Deployment is then paused or
// terminating, or its last rollout was complete and all its pods still have the template. Or the controller may have had to scale the
// ReplicaSets in proportion.
func (write *statusWrite) checkRefreshed() {
	d, after := write.from, write.written.Status.ConditionWithTime(objects.ProgressingCondition)
	if after == (objects.ConditionWithTime{}) || d.ProgressDeadline == 0 || d.Paused || d.Terminating || !write.allStatesKnown || !write.progressed() ||
		write.stillComplete() || write.rollout.mayScale(d) {
		return
	}
	earliest := write.earliestDecision.Truncate(time.Second).Add(-tolerance)
	write.expect(!after.LastUpdateTime.Before(earliest),
		fmt.Sprintf("progress, and condition Progressing (%s) with lastUpdateTime %s", after.Reason, after.LastUpdateTime.Format(time.TimeOnly)),
		fmt.Sprintf("a lastUpdateTime of %s or later, because the replica counts show progress", earliest.Format(time.TimeOnly)))
}

// stillComplete reports whether the last rollout was complete, and all pods still have the template of
// the Deployment. The controller then does not evaluate the progress, even if pods are unavailable.
func (write *statusWrite) stillComplete() bool {
	s := write.written.Status
	return write.from.Status.Condition(objects.ProgressingCondition).Reason == objects.NewReplicaSetAvailableReason && s.Replicas == s.UpdatedReplicas
}

// mayScale reports whether the controller may have had to scale the ReplicaSets in proportion. It
// considers all states on which the controller may have acted.
func (r *rolloutState) mayScale(d *objects.Deployment) bool {
	return slices.ContainsFunc(r.replicaSets, func(s cachedVersion[replicaSetsState]) bool {
		return scalingPending(d, s.value.cached) || scalingPending(d, s.value.withOwnWrites)
	})
}

// checkDeadline checks a write that sets the reason ProgressDeadlineExceeded.
//
// The string found describes the written condition for evidence. The parameter before is the
// previous condition Progressing, which the write replaces.
//
// The reason is right only if the deadline has passed since the last progress. The rollout must be
// neither paused nor complete, and the controller must have been unable to scale any ReplicaSet
// (see couldHaveScaled). If the previous condition says that the rollout was complete, no deadline
// applies (allowed behavior no-deadline-after-completion).
func (write *statusWrite) checkDeadline(found string, before objects.ConditionWithTime) {
	due := before.LastUpdateTime.Add(write.written.ProgressDeadline)
	write.expect(before != objects.ConditionWithTime{} && !write.now.Add(tolerance).Before(due), found,
		fmt.Sprintf("reason ProgressDeadlineExceeded only after the progress deadline, which is at %s", due.Format(time.TimeOnly)))
	write.expect(before.Reason != objects.NewReplicaSetAvailableReason, found, "no missed deadline, because the last rollout was already complete")
	write.expect(!write.written.Paused, found, "no missed deadline, because spec.paused is true")
	write.expect(before.Reason != objects.DeploymentPausedReason, found, "reason DeploymentResumed first, because the time while the Deployment was paused does not count")
	write.expect(!write.complete(), found, "no missed deadline, because the rollout is complete")
	write.expect(!write.couldHaveScaled(), found, "no missed deadline, because the rolling update could have scaled a ReplicaSet")
}

// couldHaveScaled reports whether the controller could certainly have continued the rolling update
// instead of reporting a missed deadline.
//
// The result is true only if the rolling update could scale a ReplicaSet in each state that the
// cache contained in the 2 s (2 * lag) before the write. It is false in these cases:
//
//   - The Deployment is paused, or its strategy is Recreate.
//   - The process received the Deployment's version less than deadlineReportMax (3 s) before the
//     write.
//   - The model does not know all these states, or which ReplicaSets belonged to the Deployment.
//   - The controller may have had a good reason to be late (mayBeDelayed).
func (write *statusWrite) couldHaveScaled() bool {
	d, at := write.written, write.processNow.Sub(write.start)
	if d.Recreate || d.Paused || write.processNow.Sub(write.earliestDecision) < deadlineReportMax || write.rollout.mayBeDelayed(at) || !write.rollout.ownershipClear(at-2*lag, at) {
		return false
	}
	states := keepSince(write.rollout.replicaSets, at-2*lag)
	return states[0].since <= at-2*lag && every(states, func(s cachedVersion[replicaSetsState]) bool {
		return every([][]*objects.Owner{s.value.cached, s.value.withOwnWrites}, func(sets []*objects.Owner) bool {
			current, old := splitByTemplate(d, sets)
			return len(current) == 1 && !slices.ContainsFunc(old, hasExcessAvailable) && canRoll(d, sets, current[0], old)
		})
	})
}

// hasExcessAvailable reports whether a ReplicaSet with spec.replicas above 0 has more available
// pods than spec.replicas.
//
// This happens when the API server refuses to delete the pods. Upstream then scales no old
// ReplicaSet down (allowed behavior undeletable-pods).
func hasExcessAvailable(set *objects.Owner) bool {
	return set.Replicas > 0 && set.Status.AvailableReplicas > set.Replicas
}

// deadlineReportMax is how long after the progress deadline the controller must write a status
// with the reason ProgressDeadlineExceeded.
const deadlineReportMax = 3 * lag

// checkOverdue reports a status without ProgressDeadlineExceeded if the progress deadline passed
// more than deadlineReportMax ago.
//
// The checker skips these writes:
//
//   - a write for a paused or terminating Deployment, or for one without progressDeadlineSeconds
//   - a write that replaces a reason to which no deadline applies, such as NewReplicaSetAvailable
//   - a write based on a version that the process received only after the deadline
//   - a second status write since the version arrived, because the first one may have reported the
//     deadline
//   - a write of a controller that may have been delayed (see mayBeDelayed)
func (write *statusWrite) checkOverdue() {
	c := write.from.Status.ConditionWithTime(objects.ProgressingCondition)
	switch c.Reason {
	case "", objects.DeadlineExceededReason, objects.NewReplicaSetAvailableReason, objects.ReplicaSetCreateErrorReason, objects.DeploymentPausedReason:
		return
	}
	due := write.onProcessClock(c.LastUpdateTime.Add(write.written.ProgressDeadline))
	late := write.processNow.Sub(due)
	if write.rollout.statusSentAt >= write.rollout.cachedSince(write.from) {
		return // a status that the process has sent since it received this version may report the missed deadline
	}
	if write.written.ProgressDeadline == 0 || write.from.Paused || write.from.Terminating || write.earliestDecision.After(due) || late <= deadlineReportMax || write.rollout.mayBeDelayed(due.Sub(write.start)) {
		return
	}
	write.expect(write.written.Status.Condition(objects.ProgressingCondition).Reason == objects.DeadlineExceededReason,
		fmt.Sprintf("condition Progressing with reason %s, %s after the progress deadline of %s", write.written.Status.Condition(objects.ProgressingCondition).Reason, seconds(late), write.written.ProgressDeadline),
		"reason "+objects.DeadlineExceededReason)
}

// mayBeDelayed reports whether the controller may have had a good reason to take its next step
// for the Deployment late. A step scales a ReplicaSet, or reports a missed deadline.
//
// The parameter due is the time at which the controller should have taken the step. There are two
// good reasons:
//
//   - A request for the Deployment failed or took longer than lag (1 s). Only requests since
//     decisionWindowMax (90 s) before the due time count.
//   - The Deployment was being scaled. A sync then only scales ReplicaSets.
func (r *rolloutState) mayBeDelayed(due time.Duration) bool {
	return r.delayedAt >= due-decisionWindowMax || slices.ContainsFunc(r.deployments, func(d cachedVersion[*objects.Deployment]) bool {
		return slices.ContainsFunc(r.replicaSets, func(s cachedVersion[replicaSetsState]) bool {
			return scalingPending(d.value, s.value.cached) || scalingPending(d.value, s.value.withOwnWrites)
		})
	})
}

// cachedSince returns the time at which the process received the given version of the
// Deployment. It returns 0 if the model no longer has this version.
func (r *rolloutState) cachedSince(version *objects.Deployment) time.Duration {
	for _, d := range r.deployments {
		if d.value.Version == version.Version {
			return d.since
		}
	}
	return 0
}

// complete reports whether the rollout is complete according to the written replica counts, such
// as updatedReplicas.
func (write *statusWrite) complete() bool {
	s, replicas := &write.written.Status, write.written.Replicas
	return s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas
}

// progressed reports whether the written replica counts show progress of the rollout, compared
// with the counts before the write.
func (write *statusWrite) progressed() bool {
	before, after := &write.from.Status, &write.written.Status
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas ||
		after.AvailableReplicas > before.AvailableReplicas
}
