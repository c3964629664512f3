package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestRevisions(t *testing.T) {
	// Ten replicas of version v1; v2 is to be rolled out.
	rolls := func(h *historyBuilder) {
		h.deployment("web", 10, rollingUpdate(5, 0))
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
	}
	runTestCases(t, "revisions", []testCase{
		{name: "the next revision", want: Pass, build: func(h *historyBuilder) {
			rolls(h)
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "a new one with the revision of an old one", want: Fail, evidence: "created ReplicaSet web-v2 with revision 2 when the highest revision was 2", build: func(h *historyBuilder) {
			rolls(h)
			h.deliver(h.renumber(h.find("web-v1"), "2").applyAndAnswer())
			h.wait(3 * time.Second)
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "the old one has only just been raised", want: Pass, build: func(h *historyBuilder) {
			rolls(h)
			h.deliver(h.renumber(h.find("web-v1"), "2").apply())
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "raised, to go back to it", want: Pass, build: func(h *historyBuilder) {
			rolls(h)
			h.renumber(h.find("web-v1"), "3").applyAndAnswer()
		}},
		{name: "lowered", want: Fail, evidence: "changed its revision from 4 to 3", build: func(h *historyBuilder) {
			rolls(h)
			h.deliver(h.renumber(h.find("web-v1"), "4").applyAndAnswer())
			h.renumber(h.find("web-v1"), "3").applyAndAnswer()
		}},
		{name: "lowered from a version that is replaced, which the API server refuses", want: Pass, build: func(h *historyBuilder) {
			rolls(h)
			old := h.find("web-v1")
			h.deliver(h.renumber(old, "4").applyAndAnswer())
			h.renumber(old, "3").answered(409)
		}},
	})
}

func TestSecondReplicaSet(t *testing.T) {
	rolls := func(h *historyBuilder) {
		h.deployment("web", 10, rollingUpdate(5, 0))
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
	}
	twin := func(h *historyBuilder, replicas int) *requestStep {
		o := newReplicaSetOf("web", "v2", replicas, 10)
		o.Ref = history.Ref{Namespace: namespace, Name: "web-twin"}
		o.Annotations[revisionAnnotation] = "3"
		return h.request(history.Request{Verb: "create", Resource: replicaSetResource, Namespace: namespace, Object: &o})
	}
	// Two ReplicaSets of one template and of one age, so that web-twin comes first.
	pair := func(h *historyBuilder) {
		rolls(h)
		h.deliver(h.createReplicaSet("web", "v2", 1).applyAndAnswer())
		h.deliver(twin(h, 0).applyAndAnswer())
		h.wait(3 * time.Second)
	}
	runTestCases(t, "revisions", []testCase{
		{name: "another one for the template (D25)", want: Fail, evidence: "created ReplicaSet web-twin with the same template as ReplicaSet web-v2", build: func(h *historyBuilder) {
			rolls(h)
			h.deliver(h.createReplicaSet("web", "v2", 1).applyAndAnswer())
			h.wait(3 * time.Second)
			twin(h, 1).applyAndAnswer()
		}},
		{name: "after a restart that showed the first (D5)", want: Fail, evidence: "with the same template as ReplicaSet web-v2", build: func(h *historyBuilder) {
			rolls(h)
			h.createReplicaSet("web", "v2", 1).apply()
			h.restart("subject-1")
			twin(h, 1).applyAndAnswer()
		}},
		{name: "it has not been shown the first (trap 37)", want: notFailed, build: func(h *historyBuilder) {
			rolls(h)
			h.createReplicaSet("web", "v2", 1).apply()
			twin(h, 1).applyAndAnswer()
		}},
		{name: "the first is being deleted", want: notFailed, build: func(h *historyBuilder) {
			rolls(h)
			h.deliver(h.createReplicaSet("web", "v2", 1).applyAndAnswer())
			h.deliver(h.terminate(h.find("web-v2")))
			h.wait(3 * time.Second)
			twin(h, 1).applyAndAnswer()
		}},
		{name: "the older of two is raised", want: Pass, build: func(h *historyBuilder) {
			pair(h)
			h.resize(h.find("web-twin"), 2).applyAndAnswer()
		}},
		{name: "the younger of two is raised", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 2, but ReplicaSet web-twin with the same template is older", build: func(h *historyBuilder) {
			pair(h)
			h.resize(h.find("web-v2"), 2).applyAndAnswer()
		}},
	})
}

func TestCollisionCount(t *testing.T) {
	// Version v2 is to be rolled out, and the name of its ReplicaSet is refused.
	refused := func(h *historyBuilder, holder func(*history.Object)) {
		h.deployment("web", 10, rollingUpdate(5, 0))
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
		if holder != nil {
			o := newReplicaSetOf("web", "v2", 0, 10)
			holder(&o)
			h.commit(history.Added, o)
		}
		h.createReplicaSet("web", "v2", 3).answered(409)
	}
	other := func(o *history.Object) {
		o.Body = edited(*o, "spec", fields{"template": podTemplate("web", "v7", "v2")}).Body
	}
	raise := func(h *historyBuilder, to int) {
		h.writeDeploymentStatus(h.find("web"), fields{"collisionCount": to}).answered(200)
	}
	runTestCases(t, "revisions", []testCase{
		{name: "another template has the name", want: Pass, build: func(h *historyBuilder) {
			refused(h, other)
			raise(h, 1)
		}},
		{name: "somebody else's ReplicaSet has the name", want: Pass, build: func(h *historyBuilder) {
			refused(h, func(o *history.Object) { o.Owners = nil })
			raise(h, 1)
		}},
		{name: "its own has the name, which it has not been shown (D3)", want: Fail, evidence: "changed status.collisionCount from 0 to 1; its creates that failed with a conflict had the names [web-v2]", build: func(h *historyBuilder) {
			refused(h, func(*history.Object) {})
			raise(h, 1)
		}},
		{name: "whoever had the name is gone", want: Pass, build: func(h *historyBuilder) {
			refused(h, nil)
			raise(h, 1)
		}},
		{name: "nothing was refused", want: Fail, evidence: "changed status.collisionCount from 0 to 1", build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(5, 0))
			h.replicaSetOf("web", "v1", 10, 10)
			raise(h, 1)
		}},
		{name: "by two at once", want: Fail, evidence: "from 0 to 2", build: func(h *historyBuilder) {
			refused(h, other)
			raise(h, 2)
		}},
		{name: "forgotten", want: Fail, evidence: "changed status.collisionCount from 1 to 0", build: func(h *historyBuilder) {
			refused(h, other)
			h.deliver(h.revise("web", "status", fields{"collisionCount": 1}))
			raise(h, 0)
		}},
		{name: "another part of the status is written", want: Pass, build: func(h *historyBuilder) {
			refused(h, other)
			h.deliver(h.revise("web", "status", fields{"collisionCount": 1}))
			h.writeDeploymentStatus(h.find("web"), fields{"observedGeneration": 2}).answered(200)
		}},
	})
}
