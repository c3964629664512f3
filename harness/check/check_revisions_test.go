package check

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestRevisions(t *testing.T) {
	// startRollout delivers a Deployment with ten replicas of version v1, and then the new
	// template v2.
	startRollout := func(h *historyBuilder) {
		h.deployment("web", 10, rollingUpdate(5, 0))
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
	}
	runTestCases(t, "revisions", []testCase{
		{name: "creates the next revision", want: Pass, build: func(h *historyBuilder) {
			startRollout(h)
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "creates a ReplicaSet with the revision of an old one", want: Fail, evidence: "created ReplicaSet web-v2 with revision 2 when the highest revision was 2", build: func(h *historyBuilder) {
			startRollout(h)
			h.deliver(h.renumber(h.find("web-v1"), "2").applyAndAnswer())
			h.wait(3 * time.Second)
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "the old revision has just been raised", want: Pass, build: func(h *historyBuilder) {
			startRollout(h)
			h.deliver(h.renumber(h.find("web-v1"), "2").apply())
			h.createReplicaSet("web", "v2", 3).applyAndAnswer()
		}},
		{name: "raises the revision of an old ReplicaSet for a rollback", want: Pass, build: func(h *historyBuilder) {
			startRollout(h)
			h.renumber(h.find("web-v1"), "3").applyAndAnswer()
		}},
		{name: "raises a revision twice", want: Pass, build: func(h *historyBuilder) {
			startRollout(h)
			h.deliver(h.renumber(h.find("web-v1"), "3").applyAndAnswer())
			h.renumber(h.find("web-v1"), "5").applyAndAnswer()
		}},
		{name: "raises a revision and does not record the earlier one", want: Fail, evidence: `increased the revision of the ReplicaSet from 1, and set annotation deployment.kubernetes.io/revision-history to ""`, build: func(h *historyBuilder) {
			startRollout(h)
			step := h.renumber(h.find("web-v1"), "3")
			delete(step.request.Object.Annotations, objects.RevisionHistoryAnnotation)
			step.applyAndAnswer()
		}},
		{name: "keeps a revision and changes the history", want: Fail, evidence: `kept revision 3 of the ReplicaSet, and set annotation deployment.kubernetes.io/revision-history to "1,1"`, build: func(h *historyBuilder) {
			startRollout(h)
			h.deliver(h.renumber(h.find("web-v1"), "3").applyAndAnswer())
			step := h.renumber(h.find("web-v1"), "3")
			step.request.Object.Annotations[objects.RevisionHistoryAnnotation] = "1,1"
			step.applyAndAnswer()
		}},
		{name: "lowers a revision", want: Fail, evidence: "changed the revision of the ReplicaSet from 4 to 3", build: func(h *historyBuilder) {
			startRollout(h)
			h.deliver(h.renumber(h.find("web-v1"), "4").applyAndAnswer())
			h.renumber(h.find("web-v1"), "3").applyAndAnswer()
		}},
		{name: "lowers a revision from a replaced version, which the API server rejects", want: Pass, build: func(h *historyBuilder) {
			startRollout(h)
			old := h.find("web-v1")
			h.deliver(h.renumber(old, "4").applyAndAnswer())
			h.renumber(old, "3").answered(409)
		}},
	})
}

func TestSecondReplicaSet(t *testing.T) {
	// startRollout delivers a Deployment with ten replicas of version v1, and then the new
	// template v2.
	startRollout := func(h *historyBuilder) {
		h.deployment("web", 10, rollingUpdate(5, 0))
		h.replicaSetOf("web", "v1", 10, 10)
		h.rollTo("web", "v2")
	}
	// createSecond sends a create of the ReplicaSet web-twin, which has the same template v2 as
	// the ReplicaSet web-v2.
	createSecond := func(h *historyBuilder, replicas int) *requestStep {
		o := newReplicaSetOf("web", "v2", replicas, 10)
		o.Ref = history.Ref{Namespace: namespace, Name: "web-twin"}
		h.recordSize(&o)
		o.Annotations[objects.RevisionAnnotation] = "3"
		return h.request(history.Request{Verb: "create", Resource: objects.ReplicaSetResource, Namespace: namespace, Object: &o})
	}
	// pair delivers the ReplicaSets web-v2 and web-twin, which have the same template and
	// creation time. Of two such ReplicaSets, the one whose name comes first counts as older:
	// web-twin.
	pair := func(h *historyBuilder) {
		startRollout(h)
		h.deliver(h.createReplicaSet("web", "v2", 1).applyAndAnswer())
		h.deliver(createSecond(h, 0).applyAndAnswer())
		h.wait(3 * time.Second)
	}
	runTestCases(t, "revisions", []testCase{
		{name: "creates a second ReplicaSet for a template (mutant D25)", want: Fail, evidence: "created ReplicaSet web-twin with the same template as ReplicaSet web-v2", build: func(h *historyBuilder) {
			startRollout(h)
			h.deliver(h.createReplicaSet("web", "v2", 1).applyAndAnswer())
			h.wait(3 * time.Second)
			createSecond(h, 1).applyAndAnswer()
		}},
		{name: "creates a second ReplicaSet after a restart that listed the first (mutant D5)", want: Fail, evidence: "with the same template as ReplicaSet web-v2", build: func(h *historyBuilder) {
			startRollout(h)
			h.createReplicaSet("web", "v2", 1).apply()
			h.restart("subject-1")
			createSecond(h, 1).applyAndAnswer()
		}},
		{name: "creates a second ReplicaSet before it observes the first (cache-only-decisions)", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h)
			h.createReplicaSet("web", "v2", 1).apply()
			createSecond(h, 1).applyAndAnswer()
		}},
		{name: "creates a second ReplicaSet while the first is terminating", want: notFailed, build: func(h *historyBuilder) {
			startRollout(h)
			h.deliver(h.createReplicaSet("web", "v2", 1).applyAndAnswer())
			h.deliver(h.terminate(h.find("web-v2")))
			h.wait(3 * time.Second)
			createSecond(h, 1).applyAndAnswer()
		}},
		{name: "scales up the older of two", want: Pass, build: func(h *historyBuilder) {
			pair(h)
			h.resize(h.find("web-twin"), 2).applyAndAnswer()
		}},
		{name: "scales up the younger of two", want: Fail, evidence: "scaled ReplicaSet web-v2 up to 2, but ReplicaSet web-twin with the same template is older", build: func(h *historyBuilder) {
			pair(h)
			h.resize(h.find("web-v2"), 2).applyAndAnswer()
		}},
	})
}

func TestCollisionCount(t *testing.T) {
	// refused delivers a Deployment with the new template v2, and records that the create of its
	// ReplicaSet fails because the name is taken. The function holder changes the ReplicaSet
	// that has the name; if it is nil, there is none.
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
	runTestCases(t, "revisions", []testCase{
		{name: "a ReplicaSet with another template has the name", want: Pass, build: func(h *historyBuilder) {
			refused(h, other)
			h.raiseCollisionCount(1)
		}},
		{name: "a ReplicaSet of another owner has the name", want: Pass, build: func(h *historyBuilder) {
			refused(h, func(o *history.Object) { o.Owners = nil })
			h.raiseCollisionCount(1)
		}},
		{name: "its own unobserved ReplicaSet has the name (mutant D3)", want: Fail, evidence: "changed status.collisionCount from 0 to 1; names for which its creates returned AlreadyExists: [web-v2]", build: func(h *historyBuilder) {
			refused(h, func(*history.Object) {})
			h.raiseCollisionCount(1)
		}},
		{name: "the ReplicaSet with the name is deleted by now", want: Pass, build: func(h *historyBuilder) {
			refused(h, nil)
			h.raiseCollisionCount(1)
		}},
		{name: "its own ReplicaSet has the name, and the cache still has the one of a deleted Deployment", want: Fail, evidence: "names for which its creates returned AlreadyExists: [web-v1]", build: func(h *historyBuilder) {
			buildRecreatedDeployment(h, true)
			h.createForRecreated().applyAndAnswer()
			h.createForRecreated().answered(409)
			h.raiseCollisionCount(1)
		}},
		{name: "the ReplicaSet of a deleted Deployment has the name", want: Pass, build: func(h *historyBuilder) {
			buildRecreatedDeployment(h, false)
			h.createForRecreated().answered(409)
			h.raiseCollisionCount(1)
		}},
		{name: "the ReplicaSet of a deleted Deployment has the name until the response arrives", want: Pass, build: func(h *historyBuilder) {
			former := buildRecreatedDeployment(h, false)
			create := h.createForRecreated()
			h.commit(history.Deleted, *former)
			create.apply()
			create.answered(409)
			h.raiseCollisionCount(1)
		}},
		{name: "the name changes hands after its own ReplicaSet had it", want: Pass, build: func(h *historyBuilder) {
			former := buildRecreatedDeployment(h, true)
			own := h.createForRecreated().applyAndAnswer()
			h.createForRecreated().answered(409)
			h.commit(history.Deleted, *own)
			h.commit(history.Added, *former)
			h.raiseCollisionCount(1)
		}},
		{name: "raises collisionCount without a conflict", want: Fail, evidence: "changed status.collisionCount from 0 to 1", build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(5, 0))
			h.replicaSetOf("web", "v1", 10, 10)
			h.raiseCollisionCount(1)
		}},
		{name: "raises collisionCount by two", want: Fail, evidence: "from 0 to 2", build: func(h *historyBuilder) {
			refused(h, other)
			h.raiseCollisionCount(2)
		}},
		{name: "resets collisionCount", want: Fail, evidence: "changed status.collisionCount from 1 to 0", build: func(h *historyBuilder) {
			refused(h, other)
			h.deliver(h.revise("web", "status", fields{"collisionCount": 1}))
			h.raiseCollisionCount(0)
		}},
		{name: "writes another part of the status", want: Pass, build: func(h *historyBuilder) {
			refused(h, other)
			h.deliver(h.revise("web", "status", fields{"collisionCount": 1}))
			h.writeDeploymentStatus(h.find("web"), fields{"observedGeneration": 2}).answered(200)
		}},
	})
}

func TestAppendRevision(t *testing.T) {
	long := strings.Repeat("1234,", 399) + "1234" // 1999 characters
	for _, test := range []struct {
		list     string
		revision int64
		want     string
	}{
		{"", 1, "1"},
		{"1", 3, "1,3"},
		{"1,3", 5, "1,3,5"},
		{long, 7, long[5:] + ",7"},
	} {
		if got := appendRevision(test.list, test.revision); got != test.want {
			t.Errorf("appendRevision(%q, %d) = %q, want %q", test.list, test.revision, got, test.want)
		}
	}
}
