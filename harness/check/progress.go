package check

import (
	"fmt"
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
