package check

import (
	"testing"
	"time"
)

func TestMaxSurge(t *testing.T) {
	// Ten replicas, all of version v1; v2 is to be rolled out.
	rolls := func(s *story, strategy fields) {
		s.deployment("web", 10, strategy)
		s.set("web", "v1", 10, 10)
		s.rollTo("web", "v2")
	}
	judge(t, "max-surge", []tale{
		{name: "as much as it may", want: Pass, tell: func(s *story) {
			rolls(s, rollingUpdate("25%", 0))
			s.make("web", "v2", 3).takes()
		}},
		{name: "one too many", want: Fail, says: "raised ReplicaSet web-v2 to 4, which makes 14", tell: func(s *story) {
			rolls(s, rollingUpdate("25%", 0))
			s.make("web", "v2", 4).takes()
		}},
		{name: "a percentage of surge rounds up (D14)", want: Pass, tell: func(s *story) {
			rolls(s, rollingUpdate("1%", 0))
			s.make("web", "v2", 1).takes()
		}},
		{name: "none allowed (D14)", want: Fail, says: "which makes 11", tell: func(s *story) {
			rolls(s, rollingUpdate(0, 0))
			s.make("web", "v2", 1).takes()
		}},
		{name: "more once the old one has gone down", want: Pass, tell: func(s *story) {
			rolls(s, rollingUpdate(0, 5))
			s.deliver(s.scale("web-v1", 5))
			s.make("web", "v2", 5).takes()
		}},
		{name: "it has scaled the old one down itself, and goes by the answer", want: Pass, tell: func(s *story) {
			rolls(s, rollingUpdate(0, 5))
			s.resize(s.find("web-v1"), 5).takes()
			s.make("web", "v2", 5).takes()
		}},
		{name: "it made one for the template before, and has not been shown it (trap 12)", want: legal, tell: func(s *story) {
			rolls(s, rollingUpdate(3, 0))
			s.make("web", "v2", 3).takes()
			s.deliver(s.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			s.make("web", "v3", 3).takes()
		}},
		{name: "it has been shown that one long ago", want: Fail, says: "which makes 16", tell: func(s *story) {
			rolls(s, rollingUpdate(3, 0))
			s.deliver(s.make("web", "v2", 3).takes())
			s.wait(3 * time.Second)
			s.rollTo("web", "v3")
			s.make("web", "v3", 3).takes()
		}},
		{name: "it has been shown that one a moment ago, and then the template", want: legal, tell: func(s *story) {
			rolls(s, rollingUpdate(3, 0))
			s.deliver(s.make("web", "v2", 3).takes())
			s.deliver(s.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			s.make("web", "v3", 3).takes()
		}},
		{name: "for a version of the Deployment that asks for more", want: legal, tell: func(s *story) {
			rolls(s, rollingUpdate(0, 1))
			s.deliver(s.revise("web", "spec", fields{"replicas": 12}))
			s.deliver(s.revise("web", "spec", fields{"replicas": 10}))
			s.make("web", "v2", 2).takes()
		}},
		{name: "for one that it has not been told of", want: Fail, says: "which makes 12", tell: func(s *story) {
			rolls(s, rollingUpdate(0, 1))
			s.revise("web", "spec", fields{"replicas": 12})
			s.make("web", "v2", 2).takes()
		}},
		{name: "too high after a resume, from stale annotations (D17)", want: Fail, says: "raised ReplicaSet web-v2 to 8", tell: func(s *story) {
			rolls(s, rollingUpdate(2, 0))
			half := s.set("web", "v2", 2, 2)
			s.deliver(s.revise("web", "spec", fields{"paused": true, "replicas": 8}))
			s.deliver(s.scale("web-v1", 8))
			s.deliver(s.revise("web", "spec", fields{"paused": false}))
			s.wait(3 * time.Second)
			s.resize(half, 8).takes()
		}},
		{name: "from a version of the ReplicaSet that is long replaced", want: Fail, says: "raised ReplicaSet web-v2 to 3", tell: func(s *story) {
			rolls(s, rollingUpdate(2, 0))
			half := s.set("web", "v2", 2, 2)
			s.wait(3 * time.Second)
			s.resize(half, 3).answered(409)
		}},
		{name: "a Recreate Deployment has no such bound", want: legal, tell: func(s *story) {
			rolls(s, fields{"type": "Recreate"})
			s.make("web", "v2", 10).takes()
		}},
		{name: "a ReplicaSet that is released or being deleted does not count", want: Pass, tell: func(s *story) {
			rolls(s, rollingUpdate(0, 1))
			s.deliver(s.strip(s.find("web-v1")))
			s.make("web", "v2", 10).takes()
		}},
		{name: "a new leader that has not been told", want: legal, tell: func(s *story) {
			rolls(s, rollingUpdate(0, 1))
			s.begin("subject-1")
			s.make("web", "v2", 10).takes()
		}},
	})
}
