package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestRollback(t *testing.T) {
	// A Deployment that has come to v3 by way of v1 and v2.
	third := func(s *story) {
		s.deployment("web", 10, rollingUpdate(2, 2))
		s.set("web", "v1", 0, 0)
		s.set("web", "v2", 0, 0)
		s.set("web", "v3", 10, 10)
		s.rollTo("web", "v3")
	}
	asked := func(s *story, revision string) *history.Object {
		third(s)
		s.annotate(s.find("web"), rollbackAnnotation, revision)
		s.deliver(s.find("web"))
		return s.find("web")
	}
	judge(t, "rollback", []tale{
		{name: "to the revision asked for", want: Pass, tell: func(s *story) {
			s.rollBack(asked(s, "1"), "v1").answered(200)
		}},
		{name: "to the last one", want: Pass, tell: func(s *story) {
			s.rollBack(asked(s, "0"), "v2").answered(200)
		}},
		{name: "to another one", want: Fail, says: "changed its template", tell: func(s *story) {
			s.rollBack(asked(s, "1"), "v2").answered(200)
		}},
		{name: "nobody has asked", want: Fail, says: "changed its template", tell: func(s *story) {
			third(s)
			s.rollBack(s.find("web"), "v2").answered(200)
		}},
		{name: "again, from the version that asked for it, which is refused (trap 12)", want: Pass, tell: func(s *story) {
			d := asked(s, "0")
			s.rollBack(d, "v2").lost()
			s.rollBack(d, "v2").answered(409)
		}},
		{name: "again, from the version that has been rolled back (D8)", want: Fail, says: "changed its template", tell: func(s *story) {
			d := asked(s, "0")
			s.deliver(s.commit(history.Modified, *s.rollBack(d, "v2").request.Object))
			s.rollBack(s.find("web"), "v3").answered(200)
		}},
		{name: "the wish stays (D8)", want: Fail, says: "changed its template", tell: func(s *story) {
			o := edited(*asked(s, "0"), "spec", fields{"template": podTemplate("web", "v2", "")})
			s.request(history.Request{Verb: "update", Resource: deploymentResource, Namespace: namespace, Name: "web", Object: &o}).answered(200)
		}},
		{name: "the wish goes, and nothing is done", want: Fail, says: "took the wish to roll it back away", tell: func(s *story) {
			s.rollBack(asked(s, "1"), "v3").answered(200)
		}},
		{name: "it goes, for the revision has the template already", want: Pass, tell: func(s *story) {
			s.rollBack(asked(s, "3"), "v3").answered(200)
		}},
		{name: "again, whatever has become of it", want: Fail, says: "changed its template", tell: func(s *story) {
			d := asked(s, "0")
			s.commit(history.Modified, *s.rollBack(d, "v2").request.Object)
			blind := *d
			blind.Version = 0
			s.rollBack(&blind, "v1").answered(200)
		}},
		{name: "no such revision: the wish goes, and no more", want: Pass, tell: func(s *story) {
			s.rollBack(asked(s, "7"), "v3").answered(200)
		}},
	})
}

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
