package check

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
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

func TestRecreate(t *testing.T) {
	// The old ReplicaSet has been scaled to 0; the new template is known.
	rolls := func(s *story, phase string) (old, pod *history.Object) {
		s.deployment("web", 1, fields{"type": "Recreate"})
		old = s.setFor("web", "v1", 0, 0, 1)
		pod = s.podOf(old, phase)
		s.wait(3 * time.Second)
		s.rollTo("web", "v2")
		return old, pod
	}
	judge(t, "recreate", []tale{
		{name: "an old pod still runs", want: Fail, says: "raised its new ReplicaSet web-v2 to 1 while the old pod web-v1-1 ran", tell: func(s *story) {
			rolls(s, "Running")
			s.make("web", "v2", 1).takes()
		}},
		{name: "an old pod is still going", want: Fail, says: "while the old pod", tell: func(s *story) {
			_, pod := rolls(s, "Running")
			s.deliver(s.terminate(pod))
			s.make("web", "v2", 1).takes()
		}},
		{name: "the new one is there and is scaled up too early", want: Fail, says: "raised its new ReplicaSet web-v2 to 1", tell: func(s *story) {
			rolls(s, "Running")
			s.resize(s.setFor("web", "v2", 0, 0, 1), 1).takes()
		}},
		{name: "all old pods are gone", want: Pass, tell: func(s *story) {
			_, pod := rolls(s, "Running")
			s.remove(pod)
			s.make("web", "v2", 1).takes()
		}},
		{name: "the old pods have failed (D7)", want: Pass, tell: func(s *story) {
			rolls(s, "Failed")
			s.make("web", "v2", 1).takes()
		}},
		{name: "an old pod has just turned up", want: Pass, tell: func(s *story) {
			old, pod := rolls(s, "Failed")
			s.remove(pod)
			s.podOf(old, "Running")
			s.make("web", "v2", 1).takes()
		}},
		{name: "there is no old one (D22)", want: legal, tell: func(s *story) {
			s.deployment("web", 1, fields{"type": "Recreate"})
			s.wait(3 * time.Second)
			s.make("web", "v1", 1).takes()
		}},
		{name: "scaled while it is paused", want: legal, tell: func(s *story) {
			old, _ := rolls(s, "Running")
			s.deliver(s.revise("web", "spec", fields{"paused": true}))
			s.resize(old, 1).takes()
		}},
		{name: "it rolls by now", want: legal, tell: func(s *story) {
			rolls(s, "Running")
			s.deliver(s.revise("web", "spec", fields{"strategy": rollingUpdate(1, 0)}))
			s.make("web", "v2", 1).takes()
		}},
	})
}

// TestFenceposts: percentages round as promised, and a rollout can always move.
func TestFenceposts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(0, 1000).Draw(t, "replicas")
		draw := func(label string) (of intstr.IntOrString, exact float64) {
			n := rapid.IntRange(0, 100).Draw(t, label)
			if rapid.Bool().Draw(t, label+" is a percentage") {
				return intstr.FromString(strconv.Itoa(n) + "%"), float64(n) * float64(replicas) / 100
			}
			return intstr.FromInt32(int32(n)), float64(n)
		}
		maxSurge, exactSurge := draw("maxSurge")
		maxUnavailable, exactUnavailable := draw("maxUnavailable")
		surge, unavailable, err := fenceposts(&maxSurge, &maxUnavailable, replicas)
		if err != nil {
			t.Fatal(err)
		}
		if s := float64(surge); s < exactSurge-1e-9 || s >= exactSurge+1 {
			t.Errorf("surge %d of %v", surge, exactSurge)
		}
		if u := float64(unavailable); u > max(exactUnavailable+1e-9, 1) || unavailable > replicas {
			t.Errorf("unavailable %d of %v", unavailable, exactUnavailable)
		}
		if replicas > 0 && surge+unavailable == 0 {
			t.Error("it could never move")
		}
	})
}
