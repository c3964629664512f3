package check

import (
	"fmt"
	"slices"
	"time"
)

// This file judges the condition Progressing.

// Reasons of the condition Progressing.
const (
	setAvailable     = "NewReplicaSetAvailable"
	setUpdated       = "ReplicaSetUpdated"
	setCreateError   = "ReplicaSetCreateError"
	deadlineExceeded = "ProgressDeadlineExceeded"
	deploymentPaused = "DeploymentPaused"
	resumed          = "DeploymentResumed"
)

// progressStatus is with which status each reason goes.
var progressStatus = map[string]string{
	"NewReplicaSetCreated": "True",
	"FoundNewReplicaSet":   "True",
	setUpdated:             "True",
	setAvailable:           "True",
	setCreateError:         "False",
	deadlineExceeded:       "False",
	deploymentPaused:       "Unknown",
	resumed:                "Unknown",
}

// judgeProgress judges the condition Progressing, where the report changes it.
func (r *report) judgeProgress() {
	r.judgeOverdue()
	was, is := r.from.status.dated("Progressing"), r.said.status.dated("Progressing")
	if is == was || is == (datedCondition{}) {
		return
	}
	said := fmt.Sprintf("the condition Progressing %s (%s)", is.Status, is.Reason)
	r.expect(r.said.deadline > 0, said, "none, for it has no deadline")
	status, known := progressStatus[is.Reason]
	r.expect(known && status == is.Status, said, "a reason that there is, and its status")
	if is.Reason != was.Reason {
		r.expect(!is.LastUpdateTime.Before(r.soon.Truncate(time.Second).Add(-tolerance)),
			fmt.Sprintf("%s as of %s", said, is.LastUpdateTime.Format(time.TimeOnly)), "the time at which it came to be so")
	}
	switch is.Reason {
	case setAvailable:
		r.expect(r.complete(), said, "all replicas new and available, and no others")
	case setUpdated:
		r.expect(r.progressed(), said+" anew", "something that has come closer to the end")
	case deadlineExceeded:
		r.judgeDeadline(said, was)
	case deploymentPaused:
		r.expect(r.said.paused, said, "so only where it is paused")
	case resumed:
		r.expect(!r.said.paused && was.Reason == deploymentPaused, said, "so only after a pause")
	}
}

// judgeDeadline: a rollout is too late when a deadline has passed since the last
// progress, is neither paused nor at its end, and has not been there before:
// what ended in time stays so, whatever becomes of its pods (trap 28).
func (r *report) judgeDeadline(said string, was datedCondition) {
	due := was.LastUpdateTime.Add(r.said.deadline)
	r.expect(was != datedCondition{} && !r.now.Add(tolerance).Before(due), said,
		fmt.Sprintf("so only after %s", due.Format(time.TimeOnly)))
	r.expect(was.Reason != setAvailable, said, "first news of a rollout, for the last one had come to its end")
	r.expect(!r.said.paused, said, "no verdict while it is paused")
	r.expect(!r.complete(), said, "none, for it has come to its end")
	r.expect(!r.idled(), said, "to go on, for it might have scaled a ReplicaSet all the while")
}

// idled reports whether the controller has left undone what the rules of a rolling
// update let it do, in each state of the ReplicaSets that it has had in mind for long
// before the report.
func (r *report) idled() bool {
	d, at := r.said, r.lived.Sub(r.start)
	if d.recreate || d.paused || r.lived.Sub(r.soon) < untoldMax || r.rollout.troubled(at) || !r.rollout.clear(at-2*lag, at) {
		return false
	}
	states := recent(r.rollout.sets, at-2*lag)
	return states[0].since <= at-2*lag && all(states, func(s shown[state]) bool {
		return all([][]*owner{s.value.told, s.value.made}, func(sets []*owner) bool {
			current, old := d.split(sets)
			return len(current) == 1 && !slices.ContainsFunc(old, lingers) && d.mayRoll(sets, current[0], old)
		})
	})
}

// lingers reports whether a ReplicaSet has more pods available than it asks for: those
// cannot be deleted, and no other is scaled down meanwhile (trap 38).
func lingers(set *owner) bool { return set.replicas > 0 && set.status.AvailableReplicas > set.replicas }

// untoldMax is how long after a deadline a report may be the first to come, in which
// something new has been found.
const untoldMax = 3 * lag

// judgeOverdue: a rollout that has missed its deadline is said to have, soon, by who
// has known since then the version that says so, and has reported nothing since. Of
// one that is being deleted only numbers are reported.
func (r *report) judgeOverdue() {
	c := r.from.status.dated("Progressing")
	switch c.Reason {
	case "", deadlineExceeded, setAvailable, setCreateError, deploymentPaused:
		return
	}
	due := c.LastUpdateTime.Add(r.said.deadline)
	late := r.lived.Sub(due)
	if r.rollout.reported >= r.rollout.toldOf(r.from) {
		return // what was reported after it may say so, and be on its way
	}
	if r.said.deadline == 0 || r.from.paused || r.from.terminating || r.soon.After(due) || late <= untoldMax || r.rollout.troubled(due.Sub(r.start)) {
		return
	}
	r.expect(r.said.status.condition("Progressing").Reason == deadlineExceeded,
		fmt.Sprintf("the condition Progressing (%s) %s after its deadline of %s", r.said.status.condition("Progressing").Reason, seconds(late), r.said.deadline),
		deadlineExceeded+", soon after that")
}

// troubled reports whether there is a reason for a process not to have told of a
// deadline that was missed at some time: a call for the Deployment failed since, or
// took long, or its scaling went on, which comes before all else.
func (r *rollout) troubled(due time.Duration) bool {
	return r.hindered >= due-memory || slices.ContainsFunc(r.deployments, func(d shown[*deployment]) bool {
		return slices.ContainsFunc(r.sets, func(s shown[state]) bool {
			return d.value.beingScaled(s.value.told) || d.value.beingScaled(s.value.made)
		})
	})
}

// toldOf is since when the process has known a version of the Deployment, as far as
// that is remembered.
func (r *rollout) toldOf(version *deployment) time.Duration {
	for _, d := range r.deployments {
		if d.value.Version == version.Version {
			return d.since
		}
	}
	return 0
}

// complete reports whether the report itself says that the rollout is at its end.
func (r *report) complete() bool {
	s, replicas := &r.said.status, r.said.replicas
	return s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas
}

// progressed reports whether the rollout has come closer to its end since the
// version that the report was written from.
func (r *report) progressed() bool {
	was, is := &r.from.status, &r.said.status
	return is.UpdatedReplicas > was.UpdatedReplicas ||
		is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		is.ReadyReplicas > was.ReadyReplicas ||
		is.AvailableReplicas > was.AvailableReplicas
}
