package check

import (
	"testing"

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
