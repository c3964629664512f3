package check

import (
	"maps"
	"strconv"
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
	judge(t, "proportional-scaling", []tale{
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

// noted is a ReplicaSet of web that the subject has been told of, with all its pods
// available, made in that second and last scaled for so many at the most.
func (s *story) noted(version string, replicas, second, most int) {
	o := *s.set("web", version, replicas, replicas)
	o.Created = time.Unix(1e9+int64(second), 0)
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[mostAnnotation] = strconv.Itoa(most)
	s.deliver(s.commit(history.Modified, o))
}

func TestProportions(t *testing.T) {
	// Twelve at the most, of which one ReplicaSet has so many and a newer one the rest.
	// By now the Deployment has had other replicas for long, and two more may be.
	resized := func(s *story, older, replicas int) {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.noted("v1", older, 1, 12)
		s.noted("v2", 12-older, 2, 12)
		s.rollTo("web", "v2")
		s.deliver(s.revise("web", "spec", fields{"replicas": replicas}))
		s.wait(3 * time.Second)
	}
	// As many of each of three versions, two of them of the same second.
	thirds := func(s *story, second int) {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.noted("v1", 4, 1, 12)
		s.noted("v2", 4, second, 12)
		s.noted("v3", 4, 3, 12)
		s.rollTo("web", "v3")
		s.deliver(s.revise("web", "spec", fields{"replicas": 11}))
		s.wait(3 * time.Second)
	}
	judge(t, "proportional-scaling", []tale{
		{name: "halves round up, and the largest comes first", want: Pass, tell: func(s *story) {
			resized(s, 9, 16)
			s.resize(s.find("web-v1"), 14).takes()
			s.resize(s.find("web-v2"), 4).takes()
		}},
		{name: "the smallest comes first", want: Fail, says: "scaled ReplicaSet web-v2 from 3 to 5", tell: func(s *story) {
			resized(s, 9, 16)
			s.resize(s.find("web-v2"), 5).takes()
		}},
		{name: "the largest gets what that leaves", want: Fail, says: "scaled ReplicaSet web-v1 from 9 to 13", tell: func(s *story) {
			resized(s, 9, 16)
			s.resize(s.find("web-v1"), 13).takes()
		}},
		{name: "the first was written, and the next came too late", want: Pass, tell: func(s *story) {
			resized(s, 9, 16)
			s.deliver(s.scaledFor("web-v1", 14, 18))
			s.wait(3 * time.Second)
			s.resize(s.find("web-v2"), 4).takes()
		}},
		{name: "fewer, and the largest has the smaller part of what is cut off", want: Fail, says: "scaled ReplicaSet web-v1 from 9 to 7", tell: func(s *story) {
			resized(s, 9, 6)
			s.resize(s.find("web-v1"), 7).takes()
		}},
		{name: "fewer, in proportion", want: Pass, tell: func(s *story) {
			resized(s, 9, 6)
			s.resize(s.find("web-v1"), 6).takes()
			s.resize(s.find("web-v2"), 2).takes()
		}},
		{name: "none at all", want: Pass, tell: func(s *story) {
			resized(s, 9, 0)
			s.resize(s.find("web-v1"), 0).takes()
			s.resize(s.find("web-v2"), 0).takes()
		}},
		{name: "of equals the newest grows", want: Pass, tell: func(s *story) {
			thirds(s, 2)
			s.resize(s.find("web-v3"), 5).takes()
		}},
		{name: "of equals another one grows", want: Fail, says: "scaled ReplicaSet web-v2 from 4 to 5", tell: func(s *story) {
			thirds(s, 2)
			s.resize(s.find("web-v2"), 5).takes()
		}},
		{name: "of equals another one grows, of the same second", want: Pass, tell: func(s *story) {
			thirds(s, 3)
			s.resize(s.find("web-v2"), 5).takes()
		}},
		{name: "nobody has noted for what one of them was scaled", want: Pass, tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(2, 2))
			s.noted("v1", 9, 1, 12)
			s.noted("v2", 3, 2, 0)
			s.deliver(s.revise("web", "spec", fields{"replicas": 16}))
			s.wait(3 * time.Second)
			s.resize(s.find("web-v1"), 13).takes()
		}},
		{name: "the two were scaled for sizes on either side", want: Pass, tell: func(s *story) {
			resized(s, 9, 16)
			s.deliver(s.scaledFor("web-v2", 5, 30))
			s.wait(3 * time.Second)
			s.resize(s.find("web-v1"), 11).takes() // not what its share and the rest come to
		}},
	})
}

// scaledFor gives a ReplicaSet other replicas, and notes for how many at the most.
func (s *story) scaledFor(name string, replicas, most int) *history.Object {
	o := *s.scale(name, replicas)
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[mostAnnotation] = strconv.Itoa(most)
	return s.commit(history.Modified, o)
}

func TestOldestFirst(t *testing.T) {
	// Ten replicas, of which four are of v1, three of v2 and five of the new v3.
	between := func(s *story, second int) {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.noted("v1", 4, 1, 12)
		s.noted("v2", 3, second, 12)
		s.noted("v3", 5, 9, 12)
		s.rollTo("web", "v3")
	}
	judge(t, "proportional-scaling", []tale{
		{name: "the oldest goes", want: Pass, tell: func(s *story) {
			between(s, 5)
			s.resize(s.find("web-v1"), 1).takes()
		}},
		{name: "the next goes", want: Fail, says: "lowered ReplicaSet web-v2 to 1, and its pods were available, while the older web-v1 asked for 4", tell: func(s *story) {
			between(s, 5)
			s.resize(s.find("web-v2"), 1).takes()
		}},
		{name: "the oldest has gone, and then the next", want: Pass, tell: func(s *story) {
			between(s, 5)
			s.resize(s.find("web-v1"), 0).takes() // of which its watch is yet to tell
			s.resize(s.find("web-v2"), 2).takes()
		}},
		{name: "the oldest has gone but for one, and then the next", want: Fail, says: "while the older web-v1 asked for 1", tell: func(s *story) {
			between(s, 5)
			s.deliver(s.resize(s.find("web-v1"), 1).takes())
			s.wait(3 * time.Second)
			s.resize(s.find("web-v2"), 2).takes()
		}},
		{name: "what is not available goes first", want: Pass, tell: func(s *story) {
			between(s, 5)
			s.deliver(s.revise("web-v2", "status", fields{"availableReplicas": 1}))
			s.resize(s.find("web-v2"), 1).takes()
		}},
		{name: "more goes than is not available", want: Fail, says: "lowered ReplicaSet web-v2 to 0", tell: func(s *story) {
			between(s, 5)
			s.deliver(s.revise("web-v2", "status", fields{"availableReplicas": 1}))
			s.resize(s.find("web-v2"), 0).takes()
		}},
		{name: "both were made in the same second", want: Pass, tell: func(s *story) {
			between(s, 1)
			s.resize(s.find("web-v2"), 1).takes()
		}},
		{name: "the older one was the new one a moment ago", want: Pass, tell: func(s *story) {
			between(s, 5)
			s.rollTo("web", "v1")
			s.deliver(s.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			s.resize(s.find("web-v2"), 1).takes()
		}},
		{name: "it is the new one that goes", want: Pass, tell: func(s *story) {
			s.deployment("web", 3, rollingUpdate(2, 2))
			s.noted("v1", 1, 1, 5)
			s.noted("v2", 4, 5, 5)
			for _, name := range []string{"web-v1", "web-v2"} {
				o := *s.find(name)
				o.Annotations = maps.Clone(o.Annotations)
				o.Annotations[desiredAnnotation] = "3"
				s.deliver(s.commit(history.Modified, o))
			}
			s.rollTo("web", "v2")
			s.resize(s.find("web-v2"), 3).takes()
		}},
		{name: "all go at once", want: Pass, tell: func(s *story) {
			s.deployment("web", 10, fields{"type": "Recreate"})
			s.noted("v1", 4, 1, 10)
			s.noted("v2", 6, 5, 10)
			s.rollTo("web", "v3")
			s.resize(s.find("web-v2"), 0).takes()
		}},
		{name: "all are scaled in proportion", want: Pass, tell: func(s *story) {
			between(s, 5)
			s.deliver(s.revise("web", "spec", fields{"replicas": 6}))
			s.resize(s.find("web-v2"), 2).takes()
		}},
	})
}
