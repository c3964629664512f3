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

// A view may go back, and come again: what was known since its first time is not
// older for that.
func TestClaimsWhereAListGoesBack(t *testing.T) {
	judge(t, "adopt-and-release", []tale{
		{name: "an orphan came while a round was under way", want: Pass, tell: func(s *story) {
			set := told(s, 1)
			s.wait(3 * time.Second)
			latest := s.revise("web", "status", nil)
			s.deliver(latest)
			s.wait(3 * time.Second)
			making := s.create(set)
			s.wait(100 * time.Millisecond)
			s.deliver(s.pod(nil, "web"))
			s.wait(1500 * time.Millisecond)
			s.deliver(set)
			s.deliver(latest)
			succeed(making)
			s.says(latest, fields{
				"replicas": 0, "fullyLabeledReplicas": 0, "readyReplicas": 0, "availableReplicas": 0, "observedGeneration": 1,
			}).answered(200)
		}},
	})
}

// A pod whose first version in view is ready was not there before.
func TestAddressesWithoutAPodThatIsNew(t *testing.T) {
	const one, two = "10.1.0.1", "10.1.0.2"
	begin := func(s *story) *history.Object {
		s.service("web", nil)
		known := s.reached(s.pod(nil, "web"), one, true, nil)
		s.wait(3 * time.Second)
		fresh := edited(*s.pod(nil, "web"), "spec", fields{"nodeName": "node-1"})
		s.commit(history.Modified, edited(fresh, "status", fields{
			"podIP": two, "podIPs": []any{fields{"ip": two}}, "phase": "Running", "conditions": []any{condition("Ready", "True", "", 1)},
		}))
		s.list(podResource)
		return known
	}
	judge(t, "addresses", []tale{
		{name: "listed just now", want: Pass, tell: func(s *story) {
			s.publish("web", subset([]any{at(begin(s), one)}, nil)).answered(201)
		}},
		{name: "listed long ago", want: Fail, says: "list nothing of pod", tell: func(s *story) {
			known := begin(s)
			s.wait(time.Minute)
			s.publish("web", subset([]any{at(known, one)}, nil)).answered(201)
		}},
	})
}
