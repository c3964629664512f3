package check

import (
	"maps"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// overdue tells of a rollout that makes no progress, with a deadline of 4 seconds that
// began 5 seconds after the start, and of the time since.
func overdue(s *story, old, current [2]int, since time.Duration) *history.Object {
	s.deployment("web", 10, rollingUpdate(2, 2))
	s.set("web", "v1", old[0], old[1])
	s.set("web", "v2", current[0], current[1])
	s.rollTo("web", "v2")
	s.deliver(s.revise("web", "spec", fields{"progressDeadlineSeconds": 4}))
	s.wait(5*time.Second - s.at)
	d := s.revise("web", "status", progressing(sums(12, 6, 7, 5), true, setUpdated, 5))
	s.deliver(d)
	s.wait(since)
	return d
}

// progressing is a status with the conditions Available and Progressing.
func progressing(status fields, holds bool, reason string, second int64) fields {
	status = maps.Clone(status)
	status["conditions"] = []any{
		fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
		condition("Progressing", conditionStatus(holds), reason, second),
	}
	return status
}

// What a correct controller does where a view is late, goes back, or calls take long:
// no deadline may be held against it.
func TestDeadlineIsReadInTheControllersFavour(t *testing.T) {
	half := [2]int{6, 6}
	judge(t, "deployment-status", []tale{
		{name: "it is not told, and nothing excuses that", want: Fail, says: "after its deadline of 4s", tell: func(s *story) {
			d := overdue(s, half, [2]int{6, 2}, 10*time.Second)
			s.report(d, progressing(sums(12, 6, 8, 4), true, setUpdated, 15)).answered(200)
		}},
		{name: "it is being deleted, and only its numbers are reported", want: Pass, tell: func(s *story) {
			overdue(s, half, [2]int{6, 2}, 2*time.Second)
			s.deliver(s.terminate(s.find("web")))
			s.wait(8 * time.Second)
			s.report(s.find("web"), progressing(sums(12, 6, 8, 4), true, setUpdated, 5)).answered(200)
		}},
		{name: "what it reported last, which said so, is not in view yet", want: Pass, tell: func(s *story) {
			d := overdue(s, half, [2]int{6, 2}, 5*time.Second)
			s.report(d, progressing(sums(12, 6, 8, 4), false, deadlineExceeded, 10)).answered(200)
			s.wait(3 * time.Second)
			s.report(d, progressing(sums(12, 6, 8, 4), true, setUpdated, 13)).answered(409)
		}},
		{name: "a call of the same round took long", want: Pass, tell: func(s *story) {
			d := overdue(s, half, [2]int{6, 2}, 3*time.Second)
			a := s.resize(s.find("web-v1"), 6)
			s.wait(6 * time.Second)
			a.answered(200)
			s.report(d, progressing(sums(12, 6, 8, 4), true, setUpdated, 14)).answered(200)
		}},
		{name: "old pods that cannot be deleted hold it up (trap 38)", want: Pass, tell: func(s *story) {
			d := overdue(s, [2]int{4, 6}, [2]int{8, 8}, 10*time.Second)
			s.report(d, progressing(sums(12, 8, 14, 0), false, deadlineExceeded, 15)).answered(200)
		}},
	})
}

// condition is one of a Deployment, renewed at some second of the story.
func condition(kind, status, reason string, second int64) fields {
	return fields{"type": kind, "status": status, "reason": reason, "lastUpdateTime": time.Unix(1e9+second, 0).UTC().Format(time.RFC3339)}
}

// sums is a Deployment's status by its numbers.
func sums(replicas, updated, ready, unavailable int) fields {
	return fields{
		"observedGeneration": 1, "replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready,
		"availableReplicas": ready, "unavailableReplicas": unavailable,
		"conditions": []any{fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}},
	}
}

func TestDeploymentStatus(t *testing.T) {
	// Ten replicas on their way from v1, six of which are left, to v2, of whose six
	// four are available.
	renewed := func(s *story) *history.Object {
		s.wait(3 * time.Second)
		d := s.revise("web", "status", nil)
		s.deliver(d)
		return d
	}
	half := func(s *story) *history.Object {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.set("web", "v1", 6, 6)
		s.set("web", "v2", 6, 4)
		return renewed(s)
	}
	with := func(status fields, name string, value any) fields {
		status[name] = value
		return status
	}
	unavailable := []any{fields{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}}
	// stuck is a rollout with a deadline of 4 s, the last progress of which was 5 s into
	// the story, so many seconds ago.
	stuck := func(s *story, ago time.Duration, available int) *history.Object {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.set("web", "v1", 6, 6)
		s.set("web", "v2", 6, available)
		s.rollTo("web", "v2")
		s.deliver(s.revise("web", "spec", fields{"progressDeadlineSeconds": 4}))
		s.wait(5*time.Second - s.at)
		d := s.revise("web", "status", with(sums(12, 6, 7, 5), "conditions", []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}, condition("Progressing", "True", "ReplicaSetUpdated", 5),
		}))
		s.deliver(d)
		s.wait(ago * time.Second)
		return d
	}
	progress := func(holds bool, reason string, second int64) fields {
		return with(sums(12, 6, 8, 4), "conditions", []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			condition("Progressing", conditionStatus(holds), reason, second),
		})
	}
	judge(t, "deployment-status", []tale{
		{name: "a deadline that was long missed has been told of", want: Pass, tell: func(s *story) {
			s.report(stuck(s, 10, 2), progress(false, "ProgressDeadlineExceeded", 15)).answered(200)
		}},
		{name: "it was missed though old pods might have gone (D15)", want: Fail, says: "wrote the condition Progressing False (ProgressDeadlineExceeded)", tell: func(s *story) {
			stuck(s, 10, 4)
			s.report(s.find("web"), with(with(with(progress(false, "ProgressDeadlineExceeded", 15), "readyReplicas", 10), "availableReplicas", 10), "unavailableReplicas", 2)).answered(200)
		}},
		{name: "it is not told (D11)", want: Fail, says: "wrote the condition Progressing (ReplicaSetUpdated)", tell: func(s *story) {
			s.report(stuck(s, 10, 2), progress(true, "ReplicaSetUpdated", 15)).answered(200)
		}},
		{name: "it was missed a moment ago", want: Pass, tell: func(s *story) {
			s.report(stuck(s, 4, 2), progress(true, "ReplicaSetUpdated", 9)).answered(200)
		}},
		{name: "a call for it has failed since", want: Pass, tell: func(s *story) {
			d := stuck(s, 4, 2)
			s.resize(s.find("web-v1"), 6).answered(500)
			s.wait(6 * time.Second)
			s.report(d, progress(true, "ReplicaSetUpdated", 15)).answered(200)
		}},
		{name: "the sums of its ReplicaSets", want: Pass, tell: func(s *story) {
			s.report(half(s), sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "a ReplicaSet of which it has no answer", want: Fail, says: "wrote status.unavailableReplicas 10", tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(2, 2))
			created := s.make("web", "v1", 10)
			created.lands()
			created.lost()
			s.report(s.find("web"), sums(0, 0, 0, 10)).answered(200)
		}},
		{name: "a ReplicaSet of which it has no answer, and which it has read live", want: Pass, tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(2, 2))
			created := s.make("web", "v1", 10)
			set := created.lands()
			created.lost()
			s.readLive(set)
			s.report(s.find("web"), with(sums(0, 0, 0, 10), "conditions", unavailable)).answered(200)
		}},
		{name: "only the old ones", want: Fail, says: "wrote status.replicas 6", tell: func(s *story) {
			s.report(half(s), sums(6, 6, 10, 2)).answered(200)
		}},
		{name: "all are new", want: Fail, says: "wrote status.updatedReplicas 12", tell: func(s *story) {
			s.report(half(s), sums(12, 12, 10, 2)).answered(200)
		}},
		{name: "fewer than none unavailable (D20)", want: Fail, says: "wrote status.unavailableReplicas -2", tell: func(s *story) {
			s.report(half(s), sums(12, 6, 10, -2)).answered(422)
		}},
		{name: "as it was a moment ago", want: Pass, tell: func(s *story) {
			d := half(s)
			s.deliver(s.revise("web-v2", "status", fields{"readyReplicas": 6, "availableReplicas": 6}))
			s.report(d, sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "as it was long ago", want: Fail, says: "wrote status.readyReplicas 10", tell: func(s *story) {
			half(s)
			s.deliver(s.revise("web-v2", "status", fields{"readyReplicas": 6, "availableReplicas": 6}))
			s.report(renewed(s), sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "one that it has just made counts or does not", want: Pass, tell: func(s *story) {
			half(s)
			s.rollTo("web", "v3")
			s.make("web", "v3", 0).takes()
			s.report(s.find("web"), with(sums(12, 0, 10, 2), "observedGeneration", 2)).answered(200)
		}},
		{name: "the numbers that are there stay beside another condition", want: Pass, tell: func(s *story) {
			half(s)
			s.deliver(s.revise("web", "status", sums(3, 3, 3, 0)))
			s.wait(3 * time.Second)
			s.report(s.find("web"), fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				condition("Progressing", "True", "FoundNewReplicaSet", 6),
			}}).answered(200)
		}},
		{name: "said to be available, though too few are", want: Fail, says: "the condition Available False", tell: func(s *story) {
			s.report(half(s), with(sums(12, 6, 10, 2), "conditions", unavailable)).answered(200)
		}},
		{name: "a generation that is yet to come", want: Fail, says: "wrote status.observedGeneration 2", tell: func(s *story) {
			s.report(half(s), with(sums(12, 6, 10, 2), "observedGeneration", 2)).answered(200)
		}},
		{name: "a generation long past", want: Fail, says: "wrote status.observedGeneration 1", tell: func(s *story) {
			half(s)
			s.deliver(s.revise("web", "spec", fields{"replicas": 10}))
			s.deliver(s.revise("web", "status", fields{"observedGeneration": 2}))
			s.report(s.find("web"), sums(12, 6, 10, 2)).answered(200)
		}},
		{name: "a failure that no ReplicaSet has", want: Fail, says: "wrote the condition ReplicaFailure", tell: func(s *story) {
			s.report(half(s), fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True"}}}).answered(200)
		}},
		{name: "the failure of a ReplicaSet", want: Pass, tell: func(s *story) {
			d := half(s)
			failure := fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True"}}}
			s.deliver(s.revise("web-v2", "status", failure))
			s.report(d, failure).answered(200)
		}},
	})
}

func TestFailurePassedOn(t *testing.T) {
	failure := fields{"type": "ReplicaFailure", "status": "True"}
	// A rollout with a deadline of 4 s of which nothing has come since the fifth second,
	// and is nine now. Such ReplicaSets say that they fail.
	stuck := func(s *story, failing ...string) *history.Object {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.set("web", "v1", 8, 8)
		s.set("web", "v2", 4, 0)
		s.rollTo("web", "v2")
		for _, name := range failing {
			s.deliver(s.revise(name, "status", fields{"conditions": []any{failure}}))
		}
		s.deliver(s.revise("web", "spec", fields{"progressDeadlineSeconds": 4}))
		s.wait(5*time.Second - s.at)
		d := s.revise("web", "status", fields{
			"replicas": 12, "updatedReplicas": 4, "readyReplicas": 8, "availableReplicas": 8, "unavailableReplicas": 4, "observedGeneration": 3,
			"conditions": []any{condition("Available", "True", "MinimumReplicasAvailable", 5), condition("Progressing", "True", "ReplicaSetUpdated", 5)},
		})
		s.deliver(d)
		s.wait(4 * time.Second)
		return d
	}
	says := func(s *story, d *history.Object, reason string, others ...any) {
		all := []any{condition("Available", "True", "MinimumReplicasAvailable", 5), condition("Progressing", progressStatus[reason], reason, 9)}
		if reason == setUpdated {
			all[1] = condition("Progressing", "True", setUpdated, 5) // as it was
		}
		s.report(d, fields{"conditions": append(all, others...)}).answered(200)
	}
	judge(t, "deployment-status", []tale{
		{name: "too late, and its new ReplicaSet fails", want: Pass, tell: func(s *story) {
			says(s, stuck(s, "web-v2"), deadlineExceeded, failure)
		}},
		{name: "too late, and nobody hears that its new ReplicaSet fails", want: Fail, says: "(ProgressDeadlineExceeded), and no condition ReplicaFailure", tell: func(s *story) {
			says(s, stuck(s, "web-v2"), deadlineExceeded)
		}},
		{name: "too late, and nobody hears that its old ReplicaSet fails", want: Fail, says: "no condition ReplicaFailure", tell: func(s *story) {
			says(s, stuck(s, "web-v1"), deadlineExceeded)
		}},
		{name: "too late, and none fails", want: Pass, tell: func(s *story) {
			says(s, stuck(s), deadlineExceeded)
		}},
		{name: "too late, and its new ReplicaSet began to fail long before that", want: Fail, says: "no condition ReplicaFailure", tell: func(s *story) {
			d := stuck(s)
			s.wait(-3500 * time.Millisecond)
			s.deliver(s.revise("web-v2", "status", fields{"conditions": []any{failure}}))
			s.wait(3500 * time.Millisecond)
			says(s, d, deadlineExceeded)
		}},
		{name: "it has only just begun to fail", want: Pass, tell: func(s *story) {
			d := stuck(s)
			s.deliver(s.revise("web-v2", "status", fields{"conditions": []any{failure}}))
			says(s, d, deadlineExceeded)
		}},
		{name: "it fails since, while the write was under way", want: Pass, tell: func(s *story) {
			d := stuck(s)
			s.deliver(s.revise("web-v2", "status", fields{"conditions": []any{failure}}))
			s.wait(4 * time.Second)
			says(s, d, deadlineExceeded)
		}},
		{name: "it fails no more", want: Pass, tell: func(s *story) {
			d := stuck(s, "web-v2")
			s.deliver(s.revise("web-v2", "status", fields{"conditions": []any{}}))
			says(s, d, deadlineExceeded)
		}},
		{name: "a round that looks at nothing but numbers", want: Pass, tell: func(s *story) {
			says(s, stuck(s, "web-v2"), setUpdated)
		}},
	})
}

func TestProgress(t *testing.T) {
	// A Deployment with a deadline of 600 s that has said so before, at the first
	// second of the story, and has ten replicas, of which so many are available.
	said := func(s *story, reason string, available int) {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.set("web", "v1", 10, available)
		status := sums(10, 10, available, 10-available)
		status["conditions"] = []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			condition("Progressing", progressStatus[reason], reason, 1),
		}
		s.deliver(s.revise("web", "status", status))
	}
	// It says so at some second.
	says := func(s *story, status, reason string, second int64) {
		s.at = time.Duration(second)*time.Second + 500*time.Millisecond
		s.report(s.find("web"), fields{"conditions": []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			condition("Progressing", status, reason, second),
		}}).answered(200)
	}
	judge(t, "deployment-status", []tale{
		{name: "too late, and told so", want: Pass, tell: func(s *story) {
			said(s, setUpdated, 9)
			says(s, "False", deadlineExceeded, 602)
		}},
		{name: "told before it is too late (D10)", want: Fail, says: "Progressing False (ProgressDeadlineExceeded)", tell: func(s *story) {
			said(s, setUpdated, 9)
			says(s, "False", deadlineExceeded, 590)
		}},
		{name: "measured from the end of the rollout before (D10, trap 28)", want: Fail, says: "Progressing False (ProgressDeadlineExceeded)", tell: func(s *story) {
			said(s, setAvailable, 9)
			says(s, "False", deadlineExceeded, 602)
		}},
		{name: "told while it is paused", want: Fail, says: "Progressing False (ProgressDeadlineExceeded)", tell: func(s *story) {
			said(s, setUpdated, 9)
			s.deliver(s.revise("web", "spec", fields{"paused": true}))
			says(s, "False", deadlineExceeded, 602)
		}},
		{name: "told of what is at its end", want: Fail, says: "Progressing False (ProgressDeadlineExceeded)", tell: func(s *story) {
			said(s, setUpdated, 10)
			says(s, "False", deadlineExceeded, 602)
		}},
		{name: "at its end", want: Pass, tell: func(s *story) {
			said(s, setUpdated, 10)
			says(s, "True", setAvailable, 10)
		}},
		{name: "said to be at its end, and is not", want: Fail, says: "Progressing True (NewReplicaSetAvailable)", tell: func(s *story) {
			said(s, setUpdated, 9)
			says(s, "True", setAvailable, 10)
		}},
		{name: "progress without any", want: Fail, says: "Progressing True (ReplicaSetUpdated) anew", tell: func(s *story) {
			said(s, setUpdated, 9)
			says(s, "True", setUpdated, 10)
		}},
		{name: "a reason of the other status", want: Fail, says: "Progressing True (ProgressDeadlineExceeded)", tell: func(s *story) {
			said(s, setUpdated, 9)
			says(s, "True", deadlineExceeded, 602)
		}},
		{name: "paused, and resumed", want: Pass, tell: func(s *story) {
			said(s, setUpdated, 9)
			s.deliver(s.revise("web", "spec", fields{"paused": true}))
			says(s, "Unknown", deploymentPaused, 10)
			s.deliver(s.revise("web", "status", fields{"conditions": []any{condition("Progressing", "Unknown", deploymentPaused, 10)}}))
			s.deliver(s.revise("web", "spec", fields{"paused": false}))
			says(s, "Unknown", resumed, 20)
		}},
		{name: "resumed, and never was paused", want: Fail, says: "Progressing Unknown (DeploymentResumed)", tell: func(s *story) {
			said(s, setUpdated, 9)
			says(s, "Unknown", resumed, 20)
		}},
		{name: "a new reason with the time of the old one", want: Fail, says: "as of", tell: func(s *story) {
			said(s, setAvailable, 9)
			s.at = 100 * time.Second
			s.deliver(s.revise("web", "status", nil))
			s.report(s.find("web"), fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				condition("Progressing", "True", "NewReplicaSetCreated", 1),
			}}).answered(200)
		}},
		{name: "without a deadline", want: Fail, says: "the condition Progressing True (FoundNewReplicaSet)", tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(2, 2))
			s.set("web", "v1", 10, 10)
			s.deliver(s.revise("web", "status", sums(10, 10, 10, 0)))
			s.deliver(s.revise("web", "spec", fields{"progressDeadlineSeconds": nil}))
			says(s, "True", "FoundNewReplicaSet", 10)
		}},
	})
}
