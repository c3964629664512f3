package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// retry makes n failing calls, the pauses between them growing from first by
// the given factor.
func retry(s *story, n int, first time.Duration, factor int, call func()) {
	for pause := first; n > 0; n-- {
		call()
		s.wait(pause)
		pause *= time.Duration(factor)
	}
}

func TestBackOff(t *testing.T) {
	judge(t, "back-off", []tale{
		{name: "5 ms doubling", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			retry(s, 11, 5*time.Millisecond, 2, func() { s.create(rs).answered(500) })
		}},
		{name: "no back-off", want: Fail, says: "failed 41 times within 1s", tell: func(s *story) {
			rs := told(s, 1)
			retry(s, 100, 2*time.Millisecond, 1, func() { s.create(rs).answered(500) })
		}},
		{name: "no back-off on a conflict", want: Fail, says: "update replicasets.apps status", tell: func(s *story) {
			rs := told(s, 0)
			s.wait(2 * time.Second)
			retry(s, 100, 2*time.Millisecond, 1, func() { s.writeStatus(rs).answered(409) })
		}},
		{name: "as quick, for there is news of pods each time", want: Pass, tell: func(s *story) {
			rs := told(s, 41)
			pods := s.running(rs, 40)
			for _, p := range pods {
				s.deliver(s.revise(p.Name, "status", map[string]any{"x": 1}))
				s.create(rs).answered(500)
			}
		}},
		{name: "the siblings of one batch count once", want: Pass, tell: func(s *story) {
			rs := told(s, 500)
			s.createAll(rs, 127)
			for _, a := range s.creates(rs, 128) {
				a.answered(403)
			}
			s.wait(5 * time.Millisecond)
			s.create(rs).answered(403)
		}},
		{name: "a batch is cut off long after it was sent", want: Pass, tell: func(s *story) {
			rs := told(s, 500)
			s.createAll(rs, 127)
			batch := s.creates(rs, 128)
			s.wait(12 * time.Second)
			for _, a := range batch {
				a.lost()
			}
		}},
		{name: "a batch is sent again each time it is cut off", want: Fail, says: "failed 31 times within 1s", tell: func(s *story) {
			rs := told(s, 500)
			s.wait(3 * time.Second)
			for range 35 {
				for _, a := range s.creates(rs, 8) {
					a.lost()
				}
				s.wait(2 * time.Millisecond)
			}
		}},
		{name: "a batch of deletes fails, each pod once", want: Pass, tell: func(s *story) {
			rs := told(s, 100)
			pods := s.running(rs, 100)
			s.deliver(s.scale("web", 0))
			retry(s, 4, 5*time.Millisecond, 2, func() {
				for _, p := range pods {
					s.delete(p).answered(500)
				}
			})
		}},
		{name: "gone already is no failure (R17 aside)", want: legal, tell: func(s *story) {
			rs := told(s, 0)
			pods := s.running(rs, 1)
			for range 100 {
				s.delete(pods[0]).answered(404)
			}
		}},
		{name: "a success between begins anew", want: Pass, tell: func(s *story) {
			rs := told(s, 10)
			for range 10 {
				retry(s, 5, time.Millisecond, 2, func() { s.create(rs).answered(500) })
				s.deliver(succeed(s.create(rs))...)
			}
		}},
		{name: "another owner's failures are its own", want: Pass, tell: func(s *story) {
			web, db := told(s, 1), s.replicaSet("db", 1)
			s.deliver(db)
			s.wait(2 * time.Second)
			for range 25 {
				s.create(web).answered(500)
				s.create(db).answered(500)
			}
		}},
	})
}

func TestBackOffOfDeploymentsAndServices(t *testing.T) {
	report := func(s *story) {
		s.request(history.Request{Verb: "update", Resource: deploymentResource, Subresource: "status", Namespace: namespace, Name: "web"}).answered(422)
	}
	judge(t, "back-off", []tale{
		{name: "a status that is refused, in a hot loop (D20)", want: Fail, says: "Deployment ns/web: update deployments.apps status", tell: func(s *story) {
			s.deployment("web", 1, rollingUpdate(1, 0))
			s.wait(2 * time.Second)
			retry(s, 100, 2*time.Millisecond, 1, func() { report(s) })
		}},
		{name: "the same with back-off", want: Pass, tell: func(s *story) {
			s.deployment("web", 1, rollingUpdate(1, 0))
			retry(s, 11, 5*time.Millisecond, 2, func() { report(s) })
		}},
		{name: "a ReplicaSet that is refused, in a hot loop", want: Fail, says: "create replicasets.apps", tell: func(s *story) {
			s.deployment("web", 1, rollingUpdate(1, 0))
			s.wait(2 * time.Second)
			retry(s, 100, 2*time.Millisecond, 1, func() { s.make("web", "v1", 1).answered(500) })
		}},
		{name: "Endpoints that cannot be written, in a hot loop (E15)", want: Fail, says: "Service ns/web: update endpoints", tell: func(s *story) {
			s.service("web", nil)
			s.endpoints("web")
			s.wait(2 * time.Second)
			retry(s, 100, 2*time.Millisecond, 1, func() { s.writeEndpoints("update", "web").answered(500) })
		}},
		{name: "as often, with news of a pod each time", want: Pass, tell: func(s *story) {
			s.service("web", nil)
			for range 50 {
				s.deliver(s.pod(nil, "web"))
				s.writeEndpoints("update", "web").answered(500)
			}
		}},
		{name: "Endpoints that are gone already need no deleting", want: legal, tell: func(s *story) {
			s.remove(s.service("web", nil))
			retry(s, 100, 2*time.Millisecond, 1, func() { s.writeEndpoints("delete", "web").answered(404) })
		}},
	})
}
