package check

import (
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	// A Deployment whose limit is one old ReplicaSet, and that has three.
	three := func(s *story, spec fields) {
		s.deployment("web", 10, rollingUpdate(2, 2))
		for _, version := range []string{"v1", "v2", "v3"} {
			s.set("web", version, 0, 0)
		}
		s.set("web", "v4", 10, 10)
		s.deliver(s.revise("web", "spec", fields{"revisionHistoryLimit": 1}))
		s.rollTo("web", "v4")
		s.settledStatus(10)
		s.deliver(s.revise("web", "spec", spec))
		s.deliver(s.revise("web", "status", fields{"observedGeneration": s.find("web").Generation}))
		s.wait(3 * time.Second)
	}
	judge(t, "revision-history-limit", []tale{
		{name: "the lowest revisions above the limit", want: Pass, tell: func(s *story) {
			three(s, fields{})
			s.trim("web-v1").answered(200)
			s.trim("web-v2").answered(200)
		}},
		{name: "more than that", want: Fail, says: "deleted its ReplicaSet web-v3: of 3 old ones, with a limit of 1, it comes after 2", tell: func(s *story) {
			three(s, fields{})
			s.trim("web-v3").answered(200)
		}},
		{name: "the new one", want: Fail, says: "deleted its ReplicaSet web-v4: it is the new one", tell: func(s *story) {
			three(s, fields{})
			s.trim("web-v4").answered(200)
		}},
		{name: "one that has pods", want: Fail, says: "it asks for 0 replicas and has 1", tell: func(s *story) {
			three(s, fields{})
			s.deliver(s.revise("web-v1", "status", fields{"replicas": 1}))
			s.wait(3 * time.Second)
			s.trim("web-v1").answered(200)
		}},
		{name: "one whose controller has not seen it scaled", want: Fail, says: "its controller has not seen what it asks for", tell: func(s *story) {
			three(s, fields{})
			s.deliver(s.revise("web-v1", "spec", fields{"replicas": 0}))
			s.wait(3 * time.Second)
			s.trim("web-v1").answered(200)
		}},
		{name: "it had no pods a moment ago", want: Pass, tell: func(s *story) {
			three(s, fields{})
			s.deliver(s.revise("web-v1", "status", fields{"replicas": 1}))
			s.trim("web-v1").answered(200)
		}},
		{name: "while it rolls", want: Fail, says: "the rollout was not at its end", tell: func(s *story) {
			three(s, fields{})
			s.rollTo("web", "v5")
			s.wait(3 * time.Second)
			s.trim("web-v1").answered(200)
		}},
		{name: "while it is paused", want: Pass, tell: func(s *story) {
			three(s, fields{"paused": true})
			s.rollTo("web", "v5")
			s.wait(3 * time.Second)
			s.trim("web-v1").answered(200)
		}},
		{name: "of a Deployment that is being deleted", want: Fail, says: "the rollout was not at its end", tell: func(s *story) {
			three(s, fields{})
			s.deliver(s.terminate(s.find("web")))
			s.wait(3 * time.Second)
			s.trim("web-v1").answered(200)
		}},
	})
}
