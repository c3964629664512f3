package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

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
