package check

import (
	"maps"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// overdue delivers a Deployment whose rollout may have missed its progress deadline, and returns
// the Deployment. The parameters old and current contain spec.replicas and the available pods of
// the ReplicaSets v1 and v2.
//
// The last progress was 5 seconds after the start, and progressDeadlineSeconds is 4. The
// parameter since is the time between the last progress and the end of the history so far.
func overdue(h *historyBuilder, old, current [2]int, since time.Duration) *history.Object {
	h.deployment("web", 10, rollingUpdate(2, 2))
	h.replicaSetOf("web", "v1", old[0], old[1])
	h.replicaSetOf("web", "v2", current[0], current[1])
	h.rollTo("web", "v2")
	h.deliver(h.revise("web", "spec", fields{"progressDeadlineSeconds": 4}))
	h.wait(5*time.Second - h.at)
	d := h.revise("web", "status", progressing(sums(12, 6, 7, 5), true, objects.ReplicaSetUpdatedReason, 5))
	h.deliver(d)
	h.wait(since)
	return d
}

// refusedCreate delivers a Deployment without ReplicaSets, and fails the create of its first ReplicaSet
// with the given code. With the deadline 0, the Deployment has no progressDeadlineSeconds.
func refusedCreate(h *historyBuilder, deadline, code int) {
	h.deployment("web", 10, rollingUpdate(2, 2))
	if deadline == 0 {
		h.deliver(h.revise("web", "spec", fields{"progressDeadlineSeconds": nil}))
	}
	h.wait(2 * time.Second)
	h.createReplicaSet("web", "v1", 10).answered(code)
	h.wait(time.Second)
}

// progressing returns a copy of a Deployment status with the conditions Available and
// Progressing. The parameter holds is true if Progressing has the status True.
//
// The parameters reason and second are the reason and the lastUpdateTime of Progressing.
func progressing(status fields, holds bool, reason string, second int64) fields {
	status = maps.Clone(status)
	status["conditions"] = []any{
		fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
		condition("Progressing", conditionStatus(holds), reason, second),
	}
	return status
}

// TestDeadlineInFavorOfController tests that a controller may sometimes report a missed deadline
// late or not at all.
//
// For example, the controller's cache may lack its last status, or one of its calls may take
// long.
func TestDeadlineInFavorOfController(t *testing.T) {
	halfway := [2]int{6, 6}
	runTestCases(t, "deployment-status", []testCase{
		{name: "a missed deadline is not reported, without a reason", want: Fail, evidence: "after the progress deadline of 4s", build: func(h *historyBuilder) {
			d := overdue(h, halfway, [2]int{6, 2}, 10*time.Second)
			h.writeDeploymentStatus(d, progressing(sums(12, 6, 8, 4), true, objects.ReplicaSetUpdatedReason, 15)).answered(200)
		}},
		{name: "a missed deadline is not reported, and the event of the last status came before its response", want: Fail, evidence: "after the progress deadline of 4s", build: func(h *historyBuilder) {
			d := overdue(h, halfway, [2]int{6, 2}, 0)
			step := h.writeDeploymentStatus(d, progressing(sums(12, 6, 8, 4), true, objects.ReplicaSetUpdatedReason, 5))
			d = h.revise("web", "status", progressing(sums(12, 6, 8, 4), true, objects.ReplicaSetUpdatedReason, 5))
			h.wait(time.Millisecond)
			h.deliver(d)
			h.wait(time.Millisecond)
			step.answered(200)
			h.wait(10 * time.Second)
			h.deliver(h.revise("web-v2", "status", fields{"readyReplicas": 3, "availableReplicas": 3}))
			h.writeDeploymentStatus(d, progressing(sums(12, 6, 9, 3), true, objects.ReplicaSetUpdatedReason, 15)).answered(200)
		}},
		{name: "a missed deadline of a terminating Deployment is not reported", want: Pass, build: func(h *historyBuilder) {
			overdue(h, halfway, [2]int{6, 2}, 2*time.Second)
			h.deliver(h.terminate(h.find("web")))
			h.wait(8 * time.Second)
			h.writeDeploymentStatus(h.find("web"), progressing(sums(12, 6, 8, 4), true, objects.ReplicaSetUpdatedReason, 5)).answered(200)
		}},
		{name: "the last status reported the deadline, and is not in the cache yet", want: Pass, build: func(h *historyBuilder) {
			d := overdue(h, halfway, [2]int{6, 2}, 5*time.Second)
			h.writeDeploymentStatus(d, progressing(sums(12, 6, 8, 4), false, objects.DeadlineExceededReason, 10)).answered(200)
			h.wait(3 * time.Second)
			h.writeDeploymentStatus(d, progressing(sums(12, 6, 8, 4), true, objects.ReplicaSetUpdatedReason, 13)).answered(409)
		}},
		{name: "a call of the same sync took longer than the deadline", want: Pass, build: func(h *historyBuilder) {
			d := overdue(h, halfway, [2]int{6, 2}, 3*time.Second)
			step := h.resize(h.find("web-v1"), 6)
			h.wait(6 * time.Second)
			step.answered(200)
			h.writeDeploymentStatus(d, progressing(sums(12, 6, 8, 4), true, objects.ReplicaSetUpdatedReason, 14)).answered(200)
		}},
		{name: "old pods that cannot be deleted block the rollout (undeletable-pods)", want: Pass, build: func(h *historyBuilder) {
			d := overdue(h, [2]int{4, 6}, [2]int{8, 8}, 10*time.Second)
			h.writeDeploymentStatus(d, progressing(sums(12, 8, 14, 0), false, objects.DeadlineExceededReason, 15)).answered(200)
		}},
	})
}

// condition returns a status condition of the given type. Its lastUpdateTime is the given second
// of the history.
func condition(kind, status, reason string, second int64) fields {
	return fields{"type": kind, "status": status, "reason": reason, "lastUpdateTime": time.Unix(1e9+second, 0).UTC().Format(time.RFC3339)}
}

// sums returns a Deployment status with the given replica counts. All ready replicas are
// available.
func sums(replicas, updated, ready, unavailable int) fields {
	return fields{
		"observedGeneration": 1, "replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready,
		"availableReplicas": ready, "unavailableReplicas": unavailable,
		"conditions": []any{fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}},
	}
}

func TestDeploymentStatus(t *testing.T) {
	// renewed waits, delivers a new version of the Deployment, and returns this version.
	renewed := func(h *historyBuilder) *history.Object {
		h.wait(3 * time.Second)
		d := h.revise("web", "status", nil)
		h.deliver(d)
		return d
	}
	// halfway delivers a rollout of ten replicas: v1 has six available pods, and v2 has six
	// pods, of which four are available.
	halfway := func(h *historyBuilder) *history.Object {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.replicaSetOf("web", "v1", 6, 6)
		h.replicaSetOf("web", "v2", 6, 4)
		return renewed(h)
	}
	with := func(status fields, name string, value any) fields {
		status[name] = value
		return status
	}
	unavailable := []any{fields{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}}
	// stuck delivers a Deployment with progressDeadlineSeconds 4 whose rollout made its last
	// progress 5 seconds after the start. The parameter ago is the number of seconds since then.
	// The parameter available is the number of available pods of v2.
	stuck := func(h *historyBuilder, ago time.Duration, available int) *history.Object {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.replicaSetOf("web", "v1", 6, 6)
		h.replicaSetOf("web", "v2", 6, available)
		h.rollTo("web", "v2")
		h.deliver(h.revise("web", "spec", fields{"progressDeadlineSeconds": 4}))
		h.wait(5*time.Second - h.at)
		d := h.revise("web", "status", with(sums(12, 6, 7, 5), "conditions", []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}, condition("Progressing", "True", "ReplicaSetUpdated", 5),
		}))
		h.deliver(d)
		h.wait(ago * time.Second)
		return d
	}
	progress := func(holds bool, reason string, second int64) fields {
		return with(sums(12, 6, 8, 4), "conditions", []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			condition("Progressing", conditionStatus(holds), reason, second),
		})
	}
	runTestCases(t, "deployment-status", []testCase{
		{name: "reports a deadline that was missed long ago", want: Pass, build: func(h *historyBuilder) {
			h.writeDeploymentStatus(stuck(h, 10, 2), progress(false, "ProgressDeadlineExceeded", 15)).answered(200)
		}},
		{name: "reports a missed deadline although it could have scaled old pods down (mutant D15)", want: Fail, evidence: "wrote condition Progressing=False (ProgressDeadlineExceeded)", build: func(h *historyBuilder) {
			stuck(h, 10, 4)
			h.writeDeploymentStatus(h.find("web"), with(with(with(progress(false, "ProgressDeadlineExceeded", 15), "readyReplicas", 10), "availableReplicas", 10), "unavailableReplicas", 2)).answered(200)
		}},
		{name: "does not report a deadline that was missed long ago (mutant D11)", want: Fail, evidence: "wrote condition Progressing with reason ReplicaSetUpdated, 6s after the progress deadline of 4s", build: func(h *historyBuilder) {
			h.writeDeploymentStatus(stuck(h, 10, 2), progress(true, "ReplicaSetUpdated", 15)).answered(200)
		}},
		{name: "does not report a deadline that was missed a moment ago", want: Pass, build: func(h *historyBuilder) {
			h.writeDeploymentStatus(stuck(h, 4, 2), progress(true, "ReplicaSetUpdated", 9)).answered(200)
		}},
		{name: "does not report a missed deadline after a failed call", want: Pass, build: func(h *historyBuilder) {
			d := stuck(h, 4, 2)
			h.resize(h.find("web-v1"), 6).answered(500)
			h.wait(6 * time.Second)
			h.writeDeploymentStatus(d, progress(true, "ReplicaSetUpdated", 15)).answered(200)
		}},
		{name: "counts are the sums over the ReplicaSets", want: Pass, build: func(h *historyBuilder) {
			h.writeDeploymentStatus(halfway(h), sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "counts a ReplicaSet whose create got no answer", want: Fail, evidence: "wrote status.unavailableReplicas 10", build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(2, 2))
			created := h.createReplicaSet("web", "v1", 10)
			created.apply()
			created.lost()
			h.writeDeploymentStatus(h.find("web"), sums(0, 0, 0, 10)).answered(200)
		}},
		{name: "counts a ReplicaSet whose create got no answer, after a live read", want: Pass, build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(2, 2))
			created := h.createReplicaSet("web", "v1", 10)
			set := created.apply()
			created.lost()
			h.readLive(set)
			h.writeDeploymentStatus(h.find("web"), with(sums(0, 0, 0, 10), "conditions", unavailable)).answered(200)
		}},
		{name: "retries a failed create of a ReplicaSet without a status", want: Fail, evidence: "creates ReplicaSet web-v1, and has not written the status", build: func(h *historyBuilder) {
			refusedCreate(h, 600, 403)
			h.createReplicaSet("web", "v1", 10).answered(403)
		}},
		{name: "retries a failed create of a ReplicaSet after a status write that failed, too", want: Pass, build: func(h *historyBuilder) {
			refusedCreate(h, 600, 403)
			h.writeDeploymentStatus(h.find("web"), fields{"conditions": []any{condition("Progressing", "False", "ReplicaSetCreateError", 0)}}).answered(500)
			h.createReplicaSet("web", "v1", 10).answered(403)
		}},
		{name: "retries a create of a ReplicaSet that failed just after the Deployment changed", want: NotExercised, build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(2, 2))
			h.createReplicaSet("web", "v1", 10).answered(403)
			h.createReplicaSet("web", "v1", 10).answered(403)
		}},
		{name: "retries a create of a ReplicaSet while the cache lacks its last status", want: notFailed, build: func(h *historyBuilder) {
			d := h.deployment("web", 10, rollingUpdate(2, 2))
			h.wait(2 * time.Second)
			step := h.writeDeploymentStatus(d, with(sums(0, 0, 0, 0), "conditions", unavailable))
			step.made = h.revise("web", "status", with(sums(0, 0, 0, 0), "conditions", unavailable))
			step.answered(200)
			h.wait(2 * time.Second)
			h.createReplicaSet("web", "v1", 10).answered(403)
			h.createReplicaSet("web", "v1", 10).answered(403)
		}},
		{name: "retries a create of a ReplicaSet after a conflict", want: NotExercised, build: func(h *historyBuilder) {
			refusedCreate(h, 600, 409)
			h.createReplicaSet("web", "v1", 10).answered(403)
		}},
		{name: "retries a failed create of a ReplicaSet without a progress deadline", want: NotExercised, build: func(h *historyBuilder) {
			refusedCreate(h, 0, 403)
			h.createReplicaSet("web", "v1", 10).answered(403)
		}},
		{name: "status.replicas counts only old ReplicaSets", want: Fail, evidence: "wrote status.replicas 6", build: func(h *historyBuilder) {
			h.writeDeploymentStatus(halfway(h), sums(6, 6, 10, 2)).answered(200)
		}},
		{name: "status.updatedReplicas counts all ReplicaSets", want: Fail, evidence: "wrote status.updatedReplicas 12", build: func(h *historyBuilder) {
			h.writeDeploymentStatus(halfway(h), sums(12, 12, 10, 2)).answered(200)
		}},
		{name: "negative unavailableReplicas (mutant D20)", want: Fail, evidence: "wrote status.unavailableReplicas -2", build: func(h *historyBuilder) {
			h.writeDeploymentStatus(halfway(h), sums(12, 6, 10, -2)).answered(422)
		}},
		{name: "counts of a moment ago", want: Pass, build: func(h *historyBuilder) {
			d := halfway(h)
			h.deliver(h.revise("web-v2", "status", fields{"readyReplicas": 6, "availableReplicas": 6}))
			h.writeDeploymentStatus(d, sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "counts of long ago", want: Fail, evidence: "wrote status.readyReplicas 10", build: func(h *historyBuilder) {
			halfway(h)
			h.deliver(h.revise("web-v2", "status", fields{"readyReplicas": 6, "availableReplicas": 6}))
			h.writeDeploymentStatus(renewed(h), sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "a ReplicaSet that it has just created may count or not", want: Pass, build: func(h *historyBuilder) {
			halfway(h)
			h.rollTo("web", "v3")
			h.createReplicaSet("web", "v3", 0).applyAndAnswer()
			h.writeDeploymentStatus(h.find("web"), with(sums(12, 0, 10, 2), "observedGeneration", 2)).answered(200)
		}},
		{name: "repeats the counts beside a new condition", want: Pass, build: func(h *historyBuilder) {
			halfway(h)
			h.deliver(h.revise("web", "status", sums(3, 3, 3, 0)))
			h.wait(3 * time.Second)
			h.writeDeploymentStatus(h.find("web"), fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				condition("Progressing", "True", "FoundNewReplicaSet", 6),
			}}).answered(200)
		}},
		{name: "Available=False with enough available replicas", want: Fail, evidence: "condition Available=False", build: func(h *historyBuilder) {
			h.writeDeploymentStatus(halfway(h), with(sums(12, 6, 10, 2), "conditions", unavailable)).answered(200)
		}},
		{name: "observedGeneration above metadata.generation", want: Fail, evidence: "wrote status.observedGeneration 2", build: func(h *historyBuilder) {
			h.writeDeploymentStatus(halfway(h), with(sums(12, 6, 10, 2), "observedGeneration", 2)).answered(200)
		}},
		{name: "observedGeneration falls", want: Fail, evidence: "wrote status.observedGeneration 1", build: func(h *historyBuilder) {
			halfway(h)
			h.deliver(h.revise("web", "spec", fields{"replicas": 10}))
			h.deliver(h.revise("web", "status", fields{"observedGeneration": 2}))
			h.writeDeploymentStatus(h.find("web"), sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "ReplicaFailure that no ReplicaSet has", want: Fail, evidence: "wrote condition ReplicaFailure", build: func(h *historyBuilder) {
			h.writeDeploymentStatus(halfway(h), fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True"}}}).answered(200)
		}},
		{name: "ReplicaFailure of a ReplicaSet", want: Pass, build: func(h *historyBuilder) {
			d := halfway(h)
			failure := fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True"}}}
			h.deliver(h.revise("web-v2", "status", failure))
			h.writeDeploymentStatus(d, failure).answered(200)
		}},
		{name: "ReplicaFailure of a ReplicaSet with another reason", want: Fail, evidence: `wrote condition ReplicaFailure with the reason ""`, build: func(h *historyBuilder) {
			d := halfway(h)
			h.deliver(h.revise("web-v2", "status", fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}}}))
			h.writeDeploymentStatus(d, fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True"}}}).answered(200)
		}},
	})
}

func TestFailurePassedOn(t *testing.T) {
	failure := fields{"type": "ReplicaFailure", "status": "True"}
	// stuck delivers a Deployment with progressDeadlineSeconds 4 whose rollout made its last
	// progress at second 5. It ends at second 9. The ReplicaSets named in failing have the
	// condition ReplicaFailure.
	stuck := func(h *historyBuilder, failing ...string) *history.Object {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.replicaSetOf("web", "v1", 8, 8)
		h.replicaSetOf("web", "v2", 4, 0)
		h.rollTo("web", "v2")
		for _, name := range failing {
			h.deliver(h.revise(name, "status", fields{"conditions": []any{failure}}))
		}
		h.deliver(h.revise("web", "spec", fields{"progressDeadlineSeconds": 4}))
		h.wait(5*time.Second - h.at)
		d := h.revise("web", "status", fields{
			"replicas": 12, "updatedReplicas": 4, "readyReplicas": 8, "availableReplicas": 8, "unavailableReplicas": 4, "observedGeneration": 3,
			"conditions": []any{condition("Available", "True", "MinimumReplicasAvailable", 5), condition("Progressing", "True", "ReplicaSetUpdated", 5)},
		})
		h.deliver(d)
		h.wait(4 * time.Second)
		return d
	}
	writes := func(h *historyBuilder, d *history.Object, reason string, others ...any) {
		all := []any{condition("Available", "True", "MinimumReplicasAvailable", 5), condition("Progressing", progressStatus[reason], reason, 9)}
		if reason == objects.ReplicaSetUpdatedReason {
			all[1] = condition("Progressing", "True", objects.ReplicaSetUpdatedReason, 5) // unchanged
		}
		h.writeDeploymentStatus(d, fields{"conditions": append(all, others...)}).answered(200)
	}
	runTestCases(t, "deployment-status", []testCase{
		{name: "deadline missed, and ReplicaFailure of the new ReplicaSet reported", want: Pass, build: func(h *historyBuilder) {
			writes(h, stuck(h, "web-v2"), objects.DeadlineExceededReason, failure)
		}},
		{name: "deadline missed, and ReplicaFailure of the new ReplicaSet not reported", want: Fail, evidence: "(ProgressDeadlineExceeded) without condition ReplicaFailure", build: func(h *historyBuilder) {
			writes(h, stuck(h, "web-v2"), objects.DeadlineExceededReason)
		}},
		{name: "deadline missed, and ReplicaFailure of the old ReplicaSet not reported", want: Fail, evidence: "without condition ReplicaFailure", build: func(h *historyBuilder) {
			writes(h, stuck(h, "web-v1"), objects.DeadlineExceededReason)
		}},
		{name: "deadline missed, and no ReplicaSet has ReplicaFailure", want: Pass, build: func(h *historyBuilder) {
			writes(h, stuck(h), objects.DeadlineExceededReason)
		}},
		{name: "deadline missed, and ReplicaFailure began long before the write", want: Fail, evidence: "without condition ReplicaFailure", build: func(h *historyBuilder) {
			d := stuck(h)
			h.wait(-3500 * time.Millisecond)
			h.deliver(h.revise("web-v2", "status", fields{"conditions": []any{failure}}))
			h.wait(3500 * time.Millisecond)
			writes(h, d, objects.DeadlineExceededReason)
		}},
		{name: "deadline missed, and ReplicaFailure began a moment ago", want: Pass, build: func(h *historyBuilder) {
			d := stuck(h)
			h.deliver(h.revise("web-v2", "status", fields{"conditions": []any{failure}}))
			writes(h, d, objects.DeadlineExceededReason)
		}},
		{name: "deadline missed, and ReplicaFailure began while the write was in flight", want: Pass, build: func(h *historyBuilder) {
			d := stuck(h)
			h.deliver(h.revise("web-v2", "status", fields{"conditions": []any{failure}}))
			h.wait(4 * time.Second)
			writes(h, d, objects.DeadlineExceededReason)
		}},
		{name: "deadline missed, and ReplicaFailure has gone", want: Pass, build: func(h *historyBuilder) {
			d := stuck(h, "web-v2")
			h.deliver(h.revise("web-v2", "status", fields{"conditions": []any{}}))
			writes(h, d, objects.DeadlineExceededReason)
		}},
		{name: "a sync that updates only counts", want: Pass, build: func(h *historyBuilder) {
			writes(h, stuck(h, "web-v2"), objects.ReplicaSetUpdatedReason)
		}},
	})
}

func TestProgress(t *testing.T) {
	// deliver creates a Deployment with ten replicas and progressDeadlineSeconds 600. The
	// condition Progressing has had the given reason since second 1.
	deliver := func(h *historyBuilder, reason string, available int) {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.replicaSetOf("web", "v1", 10, available)
		status := sums(10, 10, available, 10-available)
		status["conditions"] = []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			condition("Progressing", progressStatus[reason], reason, 1),
		}
		h.deliver(h.revise("web", "status", status))
	}
	// writes sends a Deployment status at the given second of the history. The parameters status
	// and reason are those of the condition Progressing.
	writes := func(h *historyBuilder, status, reason string, second int64) {
		h.at = time.Duration(second)*time.Second + 500*time.Millisecond
		h.writeDeploymentStatus(h.find("web"), fields{"conditions": []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			condition("Progressing", status, reason, second),
		}}).answered(200)
	}
	// becomesReady writes, in the given second, that the tenth replica of ReplicaSet web-v1 is ready. The
	// condition Progressing has the lastUpdateTime updated, in seconds.
	becomesReady := func(h *historyBuilder, second, updated int64) {
		h.at = time.Duration(second) * time.Second
		h.deliver(h.revise("web", "spec", nil), h.revise("web-v1", "status", fields{"readyReplicas": 10, "availableReplicas": 9}))
		h.at += 500 * time.Millisecond
		status := sums(10, 10, 10, 1)
		status["availableReplicas"] = 9
		h.writeDeploymentStatus(h.find("web"), progressing(status, true, objects.ReplicaSetUpdatedReason, updated)).answered(200)
	}
	// transitions delivers the condition Available with the status before. It then writes this condition
	// with the status after and another lastTransitionTime.
	transitions := func(h *historyBuilder, before, after string) {
		at := func(status string, second int64) fields {
			written := condition("Available", status, "MinimumReplicasAvailable", second)
			written["lastTransitionTime"] = written["lastUpdateTime"]
			return fields{"conditions": []any{written, condition("Progressing", "True", objects.ReplicaSetUpdatedReason, 1)}}
		}
		deliver(h, objects.ReplicaSetUpdatedReason, 9)
		h.deliver(h.revise("web", "status", at(before, 1)))
		h.writeDeploymentStatus(h.find("web"), at(after, 5)).answered(200)
	}
	runTestCases(t, "deployment-status", []testCase{
		{name: "progress with a new lastUpdateTime", want: Pass, build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			becomesReady(h, 20, 20)
		}},
		{name: "progress with the former lastUpdateTime", want: Fail, evidence: "progress, and condition Progressing (ReplicaSetUpdated) with lastUpdateTime", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			becomesReady(h, 20, 1)
		}},
		{name: "progress with the former lastUpdateTime, while the ReplicaSets have to be scaled", want: Pass, build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			h.deliver(h.scale("web", 11))
			becomesReady(h, 20, 1)
		}},
		{name: "progress with the former lastUpdateTime after a complete rollout", want: Pass, build: func(h *historyBuilder) {
			deliver(h, objects.NewReplicaSetAvailableReason, 9)
			h.at = 20 * time.Second
			h.deliver(h.revise("web-v1", "status", fields{"readyReplicas": 10, "availableReplicas": 10}))
			h.writeDeploymentStatus(h.find("web"), progressing(sums(10, 10, 10, 0), true, objects.NewReplicaSetAvailableReason, 1)).answered(200)
		}},
		{name: "ProgressDeadlineExceeded after the deadline", want: Pass, build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			writes(h, "False", objects.DeadlineExceededReason, 602)
		}},
		{name: "ProgressDeadlineExceeded before the deadline (mutant D10)", want: Fail, evidence: "Progressing=False (ProgressDeadlineExceeded)", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			writes(h, "False", objects.DeadlineExceededReason, 590)
		}},
		{name: "ProgressDeadlineExceeded counted from the end of the last rollout (mutant D10, no-deadline-after-completion)", want: Fail, evidence: "Progressing=False (ProgressDeadlineExceeded)", build: func(h *historyBuilder) {
			deliver(h, objects.NewReplicaSetAvailableReason, 9)
			writes(h, "False", objects.DeadlineExceededReason, 602)
		}},
		{name: "ProgressDeadlineExceeded after a pause, without DeploymentResumed", want: Fail, evidence: "Progressing=False (ProgressDeadlineExceeded)", build: func(h *historyBuilder) {
			deliver(h, objects.DeploymentPausedReason, 9)
			writes(h, "False", objects.DeadlineExceededReason, 620)
		}},
		{name: "ProgressDeadlineExceeded while paused", want: Fail, evidence: "Progressing=False (ProgressDeadlineExceeded)", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			writes(h, "False", objects.DeadlineExceededReason, 602)
		}},
		{name: "ProgressDeadlineExceeded for a complete rollout", want: Fail, evidence: "Progressing=False (ProgressDeadlineExceeded)", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 10)
			writes(h, "False", objects.DeadlineExceededReason, 602)
		}},
		{name: "NewReplicaSetAvailable for a complete rollout", want: Pass, build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 10)
			writes(h, "True", objects.NewReplicaSetAvailableReason, 10)
		}},
		{name: "NewReplicaSetAvailable for an incomplete rollout", want: Fail, evidence: "Progressing=True (NewReplicaSetAvailable)", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			writes(h, "True", objects.NewReplicaSetAvailableReason, 10)
		}},
		{name: "a new lastUpdateTime without progress", want: Fail, evidence: "Progressing=True (ReplicaSetUpdated) with a new lastUpdateTime", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			writes(h, "True", objects.ReplicaSetUpdatedReason, 10)
		}},
		{name: "a new lastTransitionTime with the same status", want: Fail, evidence: "condition Available=True with lastTransitionTime 01:46:45", build: func(h *historyBuilder) {
			transitions(h, "True", "True")
		}},
		{name: "a new lastTransitionTime with another status", want: Pass, build: func(h *historyBuilder) {
			transitions(h, "False", "True")
		}},
		{name: "a reason with the wrong status", want: Fail, evidence: "Progressing=True (ProgressDeadlineExceeded)", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			writes(h, "True", objects.DeadlineExceededReason, 602)
		}},
		{name: "paused and resumed", want: Pass, build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			writes(h, "Unknown", objects.DeploymentPausedReason, 10)
			h.deliver(h.revise("web", "status", fields{"conditions": []any{condition("Progressing", "Unknown", objects.DeploymentPausedReason, 10)}}))
			h.deliver(h.revise("web", "spec", fields{"paused": false}))
			writes(h, "Unknown", objects.DeploymentResumedReason, 20)
		}},
		{name: "paused after the deadline", want: Fail, evidence: "Progressing=Unknown (DeploymentPaused)", build: func(h *historyBuilder) {
			deliver(h, objects.DeadlineExceededReason, 9)
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			writes(h, "Unknown", objects.DeploymentPausedReason, 10)
		}},
		{name: "resumed without a pause", want: Fail, evidence: "Progressing=Unknown (DeploymentResumed)", build: func(h *historyBuilder) {
			deliver(h, objects.ReplicaSetUpdatedReason, 9)
			writes(h, "Unknown", objects.DeploymentResumedReason, 20)
		}},
		{name: "a new reason with the lastUpdateTime of the old one", want: Fail, evidence: "with lastUpdateTime", build: func(h *historyBuilder) {
			deliver(h, objects.NewReplicaSetAvailableReason, 9)
			h.at = 100 * time.Second
			h.deliver(h.revise("web", "status", nil))
			h.writeDeploymentStatus(h.find("web"), fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				condition("Progressing", "True", "NewReplicaSetCreated", 1),
			}}).answered(200)
		}},
		{name: "condition Progressing without progressDeadlineSeconds", want: Fail, evidence: "condition Progressing=True (FoundNewReplicaSet)", build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(2, 2))
			h.replicaSetOf("web", "v1", 10, 10)
			h.deliver(h.revise("web", "status", sums(10, 10, 10, 0)))
			h.deliver(h.revise("web", "spec", fields{"progressDeadlineSeconds": nil}))
			writes(h, "True", "FoundNewReplicaSet", 10)
		}},
	})
}
