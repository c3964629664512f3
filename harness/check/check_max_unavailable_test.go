package check

import (
	"testing"
	"time"
)

func TestMaxUnavailable(t *testing.T) {
	// Ten replicas of which two may be unavailable, none more than ten.
	rolls := func(s *story, v1, available, v2, ready int) {
		s.deployment("web", 10, rollingUpdate(0, "25%"))
		s.set("web", "v1", v1, available)
		s.set("web", "v2", v2, ready)
		s.rollTo("web", "v2")
	}
	judge(t, "max-unavailable", []tale{
		{name: "as much as it may", want: Pass, tell: func(s *story) {
			rolls(s, 10, 10, 0, 0)
			s.resize(s.find("web-v1"), 8).takes()
		}},
		{name: "a percentage of unavailability rounds down", want: Fail, says: "lowered ReplicaSet web-v1 to 7, which leaves 7 available", tell: func(s *story) {
			rolls(s, 10, 10, 0, 0)
			s.resize(s.find("web-v1"), 7).takes()
		}},
		{name: "though the new pods are not available (D16)", want: Fail, says: "which leaves 6 available", tell: func(s *story) {
			rolls(s, 8, 8, 2, 0)
			s.resize(s.find("web-v1"), 6).takes()
		}},
		{name: "only what is not available (D15)", want: legal, tell: func(s *story) {
			rolls(s, 8, 3, 2, 0)
			s.resize(s.find("web-v1"), 3).takes()
		}},
		{name: "pods have died, and it has not been told (trap 11)", want: Pass, tell: func(s *story) {
			rolls(s, 8, 8, 2, 2)
			known := s.find("web-v1")
			s.revise("web-v1", "status", fields{"availableReplicas": 0})
			s.resize(known, 6).takes()
		}},
		{name: "it has just been told that pods died", want: legal, tell: func(s *story) {
			rolls(s, 8, 8, 2, 2)
			known := s.find("web-v1")
			s.deliver(s.revise("web-v2", "status", fields{"availableReplicas": 0}))
			s.resize(known, 6).takes()
		}},
		{name: "twice in a round, told of the first before its answer (trap 39)", want: Pass, tell: func(s *story) {
			rolls(s, 8, 8, 2, 2)
			first := s.resize(s.find("web-v1"), 7)
			s.deliver(s.revise("web-v2", "status", fields{"availableReplicas": 1})) // too late for this round
			s.deliver(first.lands())
			first.answered(200)
			s.resize(first.made, 6).takes()
		}},
		{name: "in proportion, as the Deployment was scaled", want: legal, tell: func(s *story) {
			rolls(s, 8, 8, 2, 2)
			s.deliver(s.revise("web", "spec", fields{"replicas": 5}))
			s.wait(3 * time.Second)
			s.resize(s.find("web-v1"), 1).takes()
		}},
		{name: "once that is done", want: Fail, says: "lowered ReplicaSet web-v1 to 1", tell: func(s *story) {
			rolls(s, 8, 8, 2, 2)
			s.resize(s.find("web-v1"), 1).takes()
		}},
		{name: "while it is paused, ReplicaSets are scaled at once", want: legal, tell: func(s *story) {
			rolls(s, 8, 8, 2, 2)
			s.deliver(s.revise("web", "spec", fields{"paused": true}))
			s.resize(s.find("web-v1"), 1).takes()
		}},
		{name: "of two ReplicaSets in one go", want: Fail, says: "lowered ReplicaSet web-v2 to 0, which leaves 4 available", tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(0, 2))
			for _, version := range []string{"v1", "v2"} {
				s.set("web", version, 4, 4)
			}
			s.set("web", "v3", 2, 2)
			s.rollTo("web", "v3")
			known := s.find("web-v2")
			lowered := s.resize(s.find("web-v1"), 2).takes()
			s.deliver(lowered, s.revise("web-v1", "status", fields{"availableReplicas": 2}))
			s.wait(3 * time.Second)
			s.resize(known, 0).takes()
		}},
		{name: "that of a user", want: legal, tell: func(s *story) {
			rolls(s, 10, 10, 0, 0)
			s.deliver(s.scale("web-v1", 1))
		}},
	})
}
