package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// deploymentStatusCheck is the row of deployment-status in All.
var deploymentStatusCheck = Check{
	ID:               "deployment-status",
	Guarantee:        "What a controller writes into the status of a Deployment was true of it by what the controller knew of it and its ReplicaSets, and no deadline is said to be missed before it is; that a ReplicaSet fails it says with the progress.",
	Contract:         "Deployment 13, 16, 17",
	Property:         Safety,
	AllowedBehaviors: []string{"missed-deadline-report", "client-rate-limit", "observed-generation-order", "no-deadline-after-completion", "undeletable-pods", "paused-process"},
	New:              newDeploymentStatusChecker,
}

// deploymentStatusChecker: what a process writes into a Deployment's status follows
// from what it may have known of the Deployment and its ReplicaSets.
//
// A status that repeats the numbers of the version that it was written from says
// nothing new by them: such is written where only a condition or the
// collisionCount changes.
type deploymentStatusChecker struct{ findings }

func newDeploymentStatusChecker(Settings) Checker { return &deploymentStatusChecker{} }

func (checker *deploymentStatusChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != deploymentResource || r.Request.Subresource != "status" || r.Request.Object == nil {
		return
	}
	from := recentlyDecoded[deployment](m.decoder, c.rollout.uid, r.Request.Object.Version)
	said, err := m.decoder.decodeDeployment(r.Request.Object)
	if from == nil || err != nil || len(c.rollout.replicaSets) == 0 || c.process.view.reachedVersion[replicaSetResource] == 0 {
		return // the API server refuses what cannot be read
	}
	if c.rollout.deployments[0].value != from {
		return // and what is not written from the version that it has
	}
	checker.exercised++
	cached := c.rollout.deployments[0]
	report := &statusWrite{
		rollout: c.rollout, from: from, written: said,
		start: m.start.Time, now: m.start.Time.Add(m.now), processNow: m.start.Time.Add(m.processTime),
		earliestDecision: m.start.Time.Add(cached.since), // or later, if the process has stood still
		allStatesKnown:   c.rollout.replicaSets[0].since <= cached.since && c.rollout.ownershipClear(cached.since, m.processTime),
	}
	for _, wrong := range report.check() {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s wrote %s", from, c.process.name, wrong.found), wrong.expected)
		})
	}
}

// statusWrite is a write of a Deployment's status.
type statusWrite struct {
	rollout          *rolloutState
	from             *deployment // the version that it was written from
	written          *deployment
	start            time.Time // of the history
	now              time.Time
	processNow       time.Time // the same by the clock of the process
	earliestDecision time.Time // from when the decision to write it may date
	// allStatesKnown: it is known how its ReplicaSets were in all that time.
	allStatesKnown bool
	mismatches     []mismatch
}

// mismatch is something in a report that cannot be so.
type mismatch struct{ found, expected string }

// expect notes what is not so.
func (write *statusWrite) expect(ok bool, did, expected string) {
	if !ok {
		write.mismatches = append(write.mismatches, mismatch{did, expected})
	}
}

func (write *statusWrite) check() []mismatch {
	was, is := &write.from.status, &write.written.status
	write.expect(is.ObservedGeneration >= was.ObservedGeneration && is.ObservedGeneration <= write.from.generation,
		fmt.Sprintf("status.observedGeneration %d", is.ObservedGeneration),
		fmt.Sprintf("from %d, which it was, to %d, which it knew of", was.ObservedGeneration, write.from.generation))
	if write.allStatesKnown && is.counts() != was.counts() {
		for _, field := range write.countBounds() {
			write.expect(field.written >= field.low && field.written <= field.high, fmt.Sprintf("status.%s %d", field.field, field.written),
				fmt.Sprintf("from %d to %d, by what it knew of its ReplicaSets", field.low, field.high))
		}
	}
	if is.counts() != was.counts() || is.condition("Available") != was.condition("Available") {
		write.checkAvailable()
	}
	write.checkReplicaFailure()
	write.checkProgressing()
	return write.mismatches
}

// counts is the numbers of a status.
func (s *deploymentStatus) counts() [5]int {
	return [5]int{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas}
}

// countBounds are the numbers that the status says. Each ReplicaSet may have been in
// any of the states that it had of late, whatever the others were in: in one
// round they are written one after another, and some of them are listed anew.
func (write *statusWrite) countBounds() []fieldBounds {
	s := &write.written.status
	specs := write.rollout.sumRange(func(set *owner) int { return set.replicas })
	ready := write.rollout.sumRange(availableReplicas)
	bounded := func(field string, said int, of func(*owner) int) fieldBounds {
		between := write.rollout.sumRange(of)
		return fieldBounds{field, said, between.low, between.high}
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
		all[1].low = 0 // only the oldest of them counts
	}
	return all
}

// sumRange is between which bounds the sum of something over the ReplicaSets may
// have been of late.
func (r *rolloutState) sumRange(of func(*owner) int) (sum valueRange) {
	each := map[string]valueRange{}
	for i, state := range r.replicaSets {
		for _, sets := range [][]*owner{state.value.cached, state.value.withOwnWrites} {
			for _, set := range sets {
				e, known := each[set.Name]
				if !known && i > 0 {
					e.include(0) // it was not there before
				}
				e.include(of(set))
				each[set.Name] = e
			}
		}
		for name, e := range each {
			if findByName(state.value.cached, name) == nil { // nor was it then
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

// checkReplicaFailure: that pods cannot be made or deleted is said only where some ReplicaSet
// says so, and always in a round that estimates progress, if one had long said so then.
// Other rounds leave the condition as it was.
func (write *statusWrite) checkReplicaFailure() {
	is := write.written.status.condition("ReplicaFailure")
	if write.allStatesKnown && is.failure() && !write.from.status.condition("ReplicaFailure").failure() {
		write.expect(slices.ContainsFunc(write.rollout.replicaSets, func(s cachedVersion[replicaSetsState]) bool {
			return slices.ContainsFunc(s.value.cached, hasReplicaFailure)
		}),
			"the condition ReplicaFailure", "none, for none of its ReplicaSets has it")
	}
	if write.estimatesProgress() && write.rollout.ownershipClear(write.rollout.from, write.processNow.Sub(write.start)) && slices.ContainsFunc(write.rollout.replicaSets[0].value.cached, write.failsThroughout) {
		write.expect(is.failure(), fmt.Sprintf("the condition Progressing (%s), and no condition ReplicaFailure", write.written.status.condition("Progressing").Reason),
			"both, for one of its ReplicaSets could not make or delete pods")
	}
}

func hasReplicaFailure(set *owner) bool { return set.failing }

// failsThroughout reports whether a ReplicaSet says that it fails in every way in which
// the process may have had it in mind.
func (write *statusWrite) failsThroughout(set *owner) bool {
	in := func(sets []*owner) bool {
		as := findByName(sets, set.Name)
		return as != nil && as.failing
	}
	return every(write.rollout.replicaSets, func(s cachedVersion[replicaSetsState]) bool { return in(s.value.cached) && in(s.value.withOwnWrites) })
}

// estimatesProgress reports whether the report tells of progress, or of none, as only a round
// does that has looked at all ReplicaSets for it, and whether it is known how these
// stood then: the write may have been under way for long (trap 16).
func (write *statusWrite) estimatesProgress() bool {
	is := write.written.status.conditionWithTime("Progressing")
	known := write.start.Add(write.rollout.replicaSets[0].since + lag)
	if is == write.from.status.conditionWithTime("Progressing") || is.LastUpdateTime.Before(known) || is.LastUpdateTime.After(write.processNow) {
		return false
	}
	return is.Reason == replicaSetUpdated || is.Reason == newReplicaSetAvailable || is.Reason == deadlineExceeded
}

// checkAvailable judges the condition Available by the number beside it.
func (write *statusWrite) checkAvailable() {
	enough := write.written.status.AvailableReplicas >= write.written.minAvailable()
	want := availability(enough)
	is := write.written.status.condition("Available")
	write.expect(is == want, fmt.Sprintf("the condition Available %s (%s) with %d available", is.Status, is.Reason, write.written.status.AvailableReplicas),
		fmt.Sprintf("%s (%s), for at least %d must be", want.Status, want.Reason, write.written.minAvailable()))
}

// progressStatus is with which status each reason goes.
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

// checkProgressing judges the condition Progressing, where the report changes it.
func (write *statusWrite) checkProgressing() {
	write.checkOverdue()
	was, is := write.from.status.conditionWithTime("Progressing"), write.written.status.conditionWithTime("Progressing")
	if is == was || is == (deploymentConditionWithTime{}) {
		return
	}
	said := fmt.Sprintf("the condition Progressing %s (%s)", is.Status, is.Reason)
	write.expect(write.written.deadline > 0, said, "none, for it has no deadline")
	status, known := progressStatus[is.Reason]
	write.expect(known && status == is.Status, said, "a reason that there is, and its status")
	if is.Reason != was.Reason {
		write.expect(!is.LastUpdateTime.Before(write.earliestDecision.Truncate(time.Second).Add(-tolerance)),
			fmt.Sprintf("%s as of %s", said, is.LastUpdateTime.Format(time.TimeOnly)), "the time at which it came to be so")
	}
	switch is.Reason {
	case newReplicaSetAvailable:
		write.expect(write.complete(), said, "all replicas new and available, and no others")
	case replicaSetUpdated:
		write.expect(write.progressed(), said+" anew", "something that has come closer to the end")
	case deadlineExceeded:
		write.checkDeadline(said, was)
	case deploymentPaused:
		write.expect(write.written.paused, said, "so only where it is paused")
	case deploymentResumed:
		write.expect(!write.written.paused && was.Reason == deploymentPaused, said, "so only after a pause")
	}
}

// checkDeadline: a rollout is too late when a deadline has passed since the last
// progress, is neither paused nor at its end, and has not been there before:
// what ended in time stays so, whatever becomes of its pods (trap 28).
func (write *statusWrite) checkDeadline(said string, was deploymentConditionWithTime) {
	due := was.LastUpdateTime.Add(write.written.deadline)
	write.expect(was != deploymentConditionWithTime{} && !write.now.Add(tolerance).Before(due), said,
		fmt.Sprintf("so only after %s", due.Format(time.TimeOnly)))
	write.expect(was.Reason != newReplicaSetAvailable, said, "first news of a rollout, for the last one had come to its end")
	write.expect(!write.written.paused, said, "no verdict while it is paused")
	write.expect(!write.complete(), said, "none, for it has come to its end")
	write.expect(!write.couldHaveScaled(), said, "to go on, for it might have scaled a ReplicaSet all the while")
}

// couldHaveScaled reports whether the controller has left undone what the rules of a rolling
// update let it do, in each state of the ReplicaSets that it has had in mind for long
// before the report.
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

// hasExcessAvailable reports whether a ReplicaSet has more pods available than it asks for: those
// cannot be deleted, and no other is scaled down meanwhile (trap 38).
func hasExcessAvailable(set *owner) bool {
	return set.replicas > 0 && set.status.AvailableReplicas > set.replicas
}

// deadlineReportMax is how long after a deadline a report may be the first to come, in which
// something new has been found.
const deadlineReportMax = 3 * lag

// checkOverdue: a rollout that has missed its deadline is said to have, soon, by who
// has known since then the version that says so, and has reported nothing since. Of
// one that is being deleted only numbers are reported.
func (write *statusWrite) checkOverdue() {
	c := write.from.status.conditionWithTime("Progressing")
	switch c.Reason {
	case "", deadlineExceeded, newReplicaSetAvailable, replicaSetCreateError, deploymentPaused:
		return
	}
	due := c.LastUpdateTime.Add(write.written.deadline)
	late := write.processNow.Sub(due)
	if write.rollout.statusWrittenAt >= write.rollout.cachedSince(write.from) {
		return // what was reported after it may say so, and be on its way
	}
	if write.written.deadline == 0 || write.from.paused || write.from.terminating || write.earliestDecision.After(due) || late <= deadlineReportMax || write.rollout.mayBeDelayed(due.Sub(write.start)) {
		return
	}
	write.expect(write.written.status.condition("Progressing").Reason == deadlineExceeded,
		fmt.Sprintf("the condition Progressing (%s) %s after its deadline of %s", write.written.status.condition("Progressing").Reason, seconds(late), write.written.deadline),
		deadlineExceeded+", soon after that")
}

// mayBeDelayed reports whether there is a reason for a process not to have told of a
// deadline that was missed at some time: a call for the Deployment failed since, or
// took long, or its scaling went on, which comes before all else.
func (r *rolloutState) mayBeDelayed(due time.Duration) bool {
	return r.delayedAt >= due-decisionWindowMax || slices.ContainsFunc(r.deployments, func(d cachedVersion[*deployment]) bool {
		return slices.ContainsFunc(r.replicaSets, func(s cachedVersion[replicaSetsState]) bool {
			return d.value.scalingPending(s.value.cached) || d.value.scalingPending(s.value.withOwnWrites)
		})
	})
}

// cachedSince is since when the process has known a version of the Deployment, as far as
// that is remembered.
func (r *rolloutState) cachedSince(version *deployment) time.Duration {
	for _, d := range r.deployments {
		if d.value.Version == version.Version {
			return d.since
		}
	}
	return 0
}

// complete reports whether the report itself says that the rollout is at its end.
func (write *statusWrite) complete() bool {
	s, replicas := &write.written.status, write.written.replicas
	return s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas
}

// progressed reports whether the rollout has come closer to its end since the
// version that the report was written from.
func (write *statusWrite) progressed() bool {
	was, is := &write.from.status, &write.written.status
	return is.UpdatedReplicas > was.UpdatedReplicas ||
		is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		is.ReadyReplicas > was.ReadyReplicas ||
		is.AvailableReplicas > was.AvailableReplicas
}
