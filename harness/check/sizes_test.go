package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestSizes(t *testing.T) {
	// Ten replicas, of which six are of v1 and four of the new v2; the ReplicaSets
	// were last scaled for ten, with twelve at the most.
	half := func(s *story) {
		s.deployment("web", 10, rollingUpdate(2, 2))
		for version, replicas := range map[string]int{"v1": 6, "v2": 4} {
			o := s.set("web", version, replicas, replicas)
			o.Annotations[mostAnnotation] = "12"
			s.deliver(s.commit(history.Modified, *o))
		}
		s.rollTo("web", "v2")
	}
	changed := func(s *story, spec fields) {
		half(s)
		s.deliver(s.revise("web", "spec", spec))
		s.wait(3 * time.Second)
	}
	judge(t, "sizes", []tale{
		{name: "the new one goes up", want: Pass, tell: func(s *story) {
			half(s)
			s.resize(s.find("web-v2"), 6).takes()
		}},
		{name: "an old one goes down", want: Pass, tell: func(s *story) {
			half(s)
			s.resize(s.find("web-v1"), 4).takes()
		}},
		{name: "an old one goes up", want: Fail, says: "scaled ReplicaSet web-v1 from 6 to 7", tell: func(s *story) {
			half(s)
			s.resize(s.find("web-v1"), 7).takes()
		}},
		{name: "the new one goes down", want: Fail, says: "scaled ReplicaSet web-v2 from 4 to 3", tell: func(s *story) {
			half(s)
			s.resize(s.find("web-v2"), 3).takes()
		}},
		{name: "the one that was new a moment ago goes up", want: Pass, tell: func(s *story) {
			half(s)
			s.deliver(s.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			s.resize(s.find("web-v2"), 6).takes()
		}},
		{name: "each gets its share of twenty and two (D17)", want: Pass, tell: func(s *story) {
			changed(s, fields{"replicas": 20})
			s.resize(s.find("web-v1"), 15).takes()
			s.resize(s.find("web-v2"), 7).takes()
		}},
		{name: "the smaller one gets more than its share", want: Fail, says: "scaled ReplicaSet web-v2 from 4 to 16", tell: func(s *story) {
			changed(s, fields{"replicas": 20})
			s.resize(s.find("web-v2"), 16).takes()
		}},
		{name: "the larger one gets all that is missing", want: Fail, says: "scaled ReplicaSet web-v1 from 6 to 18", tell: func(s *story) {
			changed(s, fields{"replicas": 20})
			s.resize(s.find("web-v1"), 18).takes()
		}},
		{name: "the larger one gets more than is missing", want: Fail, says: "scaled ReplicaSet web-v1 from 6 to 20", tell: func(s *story) {
			changed(s, fields{"replicas": 20})
			s.resize(s.find("web-v1"), 20).takes()
		}},
		{name: "the new one has all that is asked for, and still the pods of more", want: Pass, tell: func(s *story) {
			changed(s, fields{"replicas": 3})
			s.deliver(s.scale("web-v2", 3)) // its status says four
			s.wait(3 * time.Second)
			s.resize(s.find("web-v1"), 0).takes()
		}},
		{name: "the new one has all that is asked for, and they are not available", want: Fail, says: "scaled ReplicaSet web-v1 from 6 to 0", tell: func(s *story) {
			changed(s, fields{"replicas": 3})
			s.deliver(s.scale("web-v2", 3))
			s.deliver(s.status("web-v2", 2))
			s.wait(3 * time.Second)
			s.resize(s.find("web-v1"), 0).takes()
		}},
		{name: "paused, and it rolls on", want: Fail, says: "scaled ReplicaSet web-v1 from 6 to 2", tell: func(s *story) {
			changed(s, fields{"paused": true})
			s.resize(s.find("web-v1"), 2).takes()
		}},
		{name: "it has only just been paused", want: Pass, tell: func(s *story) {
			half(s)
			s.deliver(s.revise("web", "spec", fields{"paused": true}))
			s.resize(s.find("web-v1"), 4).takes()
		}},
		{name: "paused, and scaled", want: Pass, tell: func(s *story) {
			changed(s, fields{"paused": true, "replicas": 20})
			s.resize(s.find("web-v2"), 7).takes()
		}},
		{name: "one alone takes all", want: Pass, tell: func(s *story) {
			half(s)
			s.deliver(s.scale("web-v1", 0))
			s.deliver(s.revise("web", "spec", fields{"paused": true, "replicas": 20}))
			s.wait(3 * time.Second)
			s.resize(s.find("web-v2"), 20).takes()
		}},
	})
}
