package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestRevisions(t *testing.T) {
	// Ten replicas of version v1; v2 is to be rolled out.
	rolls := func(s *story) {
		s.deployment("web", 10, rollingUpdate(5, 0))
		s.set("web", "v1", 10, 10)
		s.rollTo("web", "v2")
	}
	judge(t, "revisions", []tale{
		{name: "the next revision", want: Pass, tell: func(s *story) {
			rolls(s)
			s.make("web", "v2", 3).takes()
		}},
		{name: "a new one with the revision of an old one", want: Fail, says: "made ReplicaSet web-v2 of revision 2, though there was 2", tell: func(s *story) {
			rolls(s)
			s.deliver(s.renumber(s.find("web-v1"), "2").takes())
			s.wait(3 * time.Second)
			s.make("web", "v2", 3).takes()
		}},
		{name: "the old one has only just been raised", want: Pass, tell: func(s *story) {
			rolls(s)
			s.deliver(s.renumber(s.find("web-v1"), "2").lands())
			s.make("web", "v2", 3).takes()
		}},
		{name: "raised, to go back to it", want: Pass, tell: func(s *story) {
			rolls(s)
			s.renumber(s.find("web-v1"), "3").takes()
		}},
		{name: "lowered", want: Fail, says: "lowered its revision from 4 to 3", tell: func(s *story) {
			rolls(s)
			s.deliver(s.renumber(s.find("web-v1"), "4").takes())
			s.renumber(s.find("web-v1"), "3").takes()
		}},
		{name: "lowered from a version that is replaced, which the API server refuses", want: Pass, tell: func(s *story) {
			rolls(s)
			old := s.find("web-v1")
			s.deliver(s.renumber(old, "4").takes())
			s.renumber(old, "3").answered(409)
		}},
	})
}

func TestSecondReplicaSet(t *testing.T) {
	rolls := func(s *story) {
		s.deployment("web", 10, rollingUpdate(5, 0))
		s.set("web", "v1", 10, 10)
		s.rollTo("web", "v2")
	}
	twin := func(s *story, replicas int) *ask {
		o := setOf("web", "v2", replicas, 10)
		o.Ref = history.Ref{Namespace: namespace, Name: "web-twin"}
		o.Annotations[revisionAnnotation] = "3"
		return s.request(history.Request{Verb: "create", Resource: setResource, Namespace: namespace, Object: &o})
	}
	// Two ReplicaSets of one template and of one age, so that web-twin comes first.
	pair := func(s *story) {
		rolls(s)
		s.deliver(s.make("web", "v2", 1).takes())
		s.deliver(twin(s, 0).takes())
		s.wait(3 * time.Second)
	}
	judge(t, "revisions", []tale{
		{name: "another one for the template (D25)", want: Fail, says: "made ReplicaSet web-twin of the template that web-v2 has", tell: func(s *story) {
			rolls(s)
			s.deliver(s.make("web", "v2", 1).takes())
			s.wait(3 * time.Second)
			twin(s, 1).takes()
		}},
		{name: "after a restart that showed the first (D5)", want: Fail, says: "of the template that web-v2 has", tell: func(s *story) {
			rolls(s)
			s.make("web", "v2", 1).lands()
			s.restart("subject-1")
			twin(s, 1).takes()
		}},
		{name: "it has not been shown the first (trap 37)", want: legal, tell: func(s *story) {
			rolls(s)
			s.make("web", "v2", 1).lands()
			twin(s, 1).takes()
		}},
		{name: "the first is being deleted", want: legal, tell: func(s *story) {
			rolls(s)
			s.deliver(s.make("web", "v2", 1).takes())
			s.deliver(s.terminate(s.find("web-v2")))
			s.wait(3 * time.Second)
			twin(s, 1).takes()
		}},
		{name: "the older of two is raised", want: Pass, tell: func(s *story) {
			pair(s)
			s.resize(s.find("web-twin"), 2).takes()
		}},
		{name: "the younger of two is raised", want: Fail, says: "raised ReplicaSet web-v2 to 2, though web-twin of the same template is older", tell: func(s *story) {
			pair(s)
			s.resize(s.find("web-v2"), 2).takes()
		}},
	})
}

func TestCollisionCount(t *testing.T) {
	// Version v2 is to be rolled out, and the name of its ReplicaSet is refused.
	refused := func(s *story, holder func(*history.Object)) {
		s.deployment("web", 10, rollingUpdate(5, 0))
		s.set("web", "v1", 10, 10)
		s.rollTo("web", "v2")
		if holder != nil {
			o := setOf("web", "v2", 0, 10)
			holder(&o)
			s.commit(history.Added, o)
		}
		s.make("web", "v2", 3).answered(409)
	}
	other := func(o *history.Object) {
		o.Body = edited(*o, "spec", fields{"template": podTemplate("web", "v7", "v2")}).Body
	}
	raise := func(s *story, to int) { s.report(s.find("web"), fields{"collisionCount": to}).answered(200) }
	judge(t, "revisions", []tale{
		{name: "another template has the name", want: Pass, tell: func(s *story) {
			refused(s, other)
			raise(s, 1)
		}},
		{name: "somebody else's ReplicaSet has the name", want: Pass, tell: func(s *story) {
			refused(s, func(o *history.Object) { o.Owners = nil })
			raise(s, 1)
		}},
		{name: "its own has the name, which it has not been shown (D3)", want: Fail, says: "raised collisionCount from 0 to 1; the names it found taken, [web-v2]", tell: func(s *story) {
			refused(s, func(*history.Object) {})
			raise(s, 1)
		}},
		{name: "whoever had the name is gone", want: Pass, tell: func(s *story) {
			refused(s, nil)
			raise(s, 1)
		}},
		{name: "nothing was refused", want: Fail, says: "raised collisionCount from 0 to 1", tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(5, 0))
			s.set("web", "v1", 10, 10)
			raise(s, 1)
		}},
		{name: "by two at once", want: Fail, says: "from 0 to 2", tell: func(s *story) {
			refused(s, other)
			raise(s, 2)
		}},
		{name: "forgotten", want: Fail, says: "lowered collisionCount from 1 to 0", tell: func(s *story) {
			refused(s, other)
			s.deliver(s.revise("web", "status", fields{"collisionCount": 1}))
			raise(s, 0)
		}},
		{name: "another part of the status is written", want: Pass, tell: func(s *story) {
			refused(s, other)
			s.deliver(s.revise("web", "status", fields{"collisionCount": 1}))
			s.report(s.find("web"), fields{"observedGeneration": 2}).answered(200)
		}},
	})
}
