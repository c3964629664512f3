package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestOrphanEndpoints(t *testing.T) {
	settled := func(s *story) {
		s.phase(history.PhaseSettle)
		s.wait(time.Minute)
	}
	judge(t, "orphan-endpoints", []tale{
		{name: "deleted with its Service", want: Pass, tell: func(s *story) {
			service, e := s.service("web", nil), s.endpoints("web")
			s.remove(service)
			s.writeEndpoints("delete", "web").answered(200)
			s.remove(e)
			settled(s)
		}},
		{name: "deleted just when a Service that it was not shown has come to be", want: Pass, tell: func(s *story) { swept(s, time.Second) }},
		{name: "left, though the Service is known to be gone", want: Fail, says: "Endpoints ns/web: still there, though subject-0 was told that its Service is gone",
			tell: func(s *story) {
				service := s.service("web", nil)
				s.endpoints("web")
				s.remove(service)
				settled(s)
			}},
		{name: "left, though it was there at the start", want: Fail, says: "still there, though it had no Service when subject-1 started", tell: func(s *story) {
			s.endpoints("web")
			s.restart("subject-1")
			settled(s)
		}},
		{name: "made later without a Service (trap 33)", want: NotExercised, tell: func(s *story) {
			s.endpoints("web")
			settled(s)
		}},
		{name: "made after its Service had gone (trap 33)", want: NotExercised, tell: func(s *story) {
			s.remove(s.service("web", nil))
			s.wait(time.Second)
			s.endpoints("web")
			settled(s)
		}},
		{name: "a leader election's record is deleted at the start (E3)", want: Fail, says: "that are a leader election's record", tell: func(s *story) {
			s.lock("lock")
			s.restart("subject-1")
			s.writeEndpoints("delete", "lock").answered(200)
			settled(s)
		}},
		{name: "it is left alone", want: Pass, tell: func(s *story) {
			s.lock("lock")
			s.restart("subject-1")
			settled(s)
		}},
		{name: "it was no record a moment ago", want: legal, tell: func(s *story) {
			e := s.endpoints("lock")
			s.restart("subject-1")
			o := *e
			o.Annotations = map[string]string{leaderAnnotation: "{}"}
			s.deliver(s.commit(history.Modified, o))
			s.writeEndpoints("delete", "lock").answered(200)
			settled(s)
		}},
		{name: "written though the Service selects nothing", want: Fail, says: "of a Service without a selector or of type ExternalName", tell: func(s *story) {
			s.service("web", fields{"selector": nil})
			s.wait(3 * time.Second)
			s.writeEndpoints("create", "web").answered(201)
			settled(s)
		}},
		{name: "written though the Service is elsewhere by now (E6)", want: Fail, says: "ExternalName", tell: func(s *story) {
			o := *s.service("web", nil)
			o.Body = encoded(fields{"spec": fields{"type": "ExternalName", "selector": fields{"app": "web"}}})
			s.deliver(s.commit(history.Modified, o))
			s.wait(3 * time.Second)
			s.writeEndpoints("update", "web").answered(200)
			settled(s)
		}},
		{name: "it was here a moment ago", want: legal, tell: func(s *story) {
			o := *s.service("web", nil)
			o.Body = encoded(fields{"spec": fields{"type": "ExternalName"}})
			s.deliver(s.commit(history.Modified, o))
			s.writeEndpoints("update", "web").answered(200)
			settled(s)
		}},
		{name: "written where no Service is", want: Fail, says: "without a Service", tell: func(s *story) {
			s.writeEndpoints("create", "web").answered(201)
			settled(s)
		}},
		{name: "deleted where the Service is", want: Fail, says: "of a Service that is there", tell: func(s *story) {
			s.service("web", nil)
			s.endpoints("web")
			s.wait(3 * time.Second)
			s.writeEndpoints("delete", "web").answered(200)
			settled(s)
		}},
		{name: "deleted at the start, before the Service is seen (trap 8)", want: legal, tell: func(s *story) {
			s.endpoints("web")
			s.restart("subject-1")
			s.service("web", nil)
			s.writeEndpoints("delete", "web").answered(200)
			settled(s)
		}},
	})
}
