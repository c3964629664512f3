package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestEndpointsExact(t *testing.T) {
	// A Service with a ready pod, another that is not, and bystanders.
	const one, two = "10.1.0.1", "10.1.0.2"
	type cast struct{ one, two *history.Object }
	// begin tells of the pods; exact, of Endpoints that list them.
	begin := func(s *story, spec fields) cast {
		s.service("web", spec)
		c := cast{
			one: s.reached(s.pod(nil, "web"), one, true, nil),
			two: s.reached(s.pod(nil, "web"), two, false, nil),
		}
		s.reached(s.pod(nil, "other"), "10.1.0.3", true, nil)
		s.reached(s.pod(nil, "web"), "", true, nil)
		s.fail(s.reached(s.pod(nil, "web"), "10.1.0.4", true, nil))
		s.terminate(s.reached(s.pod(nil, "web"), "10.1.0.5", true, nil))
		s.phase(history.PhaseSettle)
		return c
	}
	told := func(spec fields, tell func(s *story, c cast)) func(s *story) {
		return func(s *story) {
			tell(s, begin(s, spec))
			s.wait(time.Minute)
		}
	}
	judge(t, "endpoints-exact", []tale{
		{name: "all as it should be", want: Pass, tell: told(nil, func(s *story, c cast) {
			s.endpoints("web", subset([]any{at(c.one, one)}, []any{at(c.two, two)}))
		})},
		{name: "missing (E4)", want: Fail, says: "Service ns/web: no Endpoints", tell: told(nil, func(*story, cast) {})},
		{name: "a pod that is ready is said not to be (E1)", want: Fail, says: "have the wrong readiness for 10.1.0.1:8080 (pod Pod ns/web-1)",
			tell: told(nil, func(s *story, c cast) {
				s.endpoints("web", subset(nil, []any{at(c.one, one), at(c.two, two)}))
			})},
		{name: "an address is missing", want: Fail, says: "lack 10.1.0.2:8080", tell: told(nil, func(s *story, c cast) {
			s.endpoints("web", subset([]any{at(c.one, one)}, nil))
		})},
		{name: "an address too many", want: Fail, says: "should not list 10.1.0.9:8080", tell: told(nil, func(s *story, c cast) {
			s.endpoints("web", subset([]any{at(c.one, one), at(c.one, "10.1.0.9")}, []any{at(c.two, two)}))
		})},
		{name: "listed both ready and not: not ready wins", want: Pass, tell: told(nil, func(s *story, c cast) {
			s.endpoints("web", subset([]any{at(c.one, one), at(c.two, two)}, []any{at(c.two, two)}))
		})},
		{name: "published though not ready (trap 34)", want: Pass, tell: told(fields{"publishNotReadyAddresses": true}, func(s *story, c cast) {
			dying := s.find("web-6")
			s.endpoints("web", subset([]any{at(c.one, one), at(c.two, two), at(dying, "10.1.0.5")}, nil))
		})},
		{name: "a port by name", want: Pass, tell: told(fields{"ports": []any{
			fields{"name": "web", "port": 80, "protocol": "TCP", "targetPort": "http"},
			fields{"name": "none", "port": 81, "protocol": "TCP", "targetPort": "metrics"},
		}}, func(s *story, c cast) {
			s.endpoints("web", fields{
				"addresses": []any{at(c.one, one)}, "notReadyAddresses": []any{at(c.two, two)},
				"ports": []any{fields{"name": "web", "port": 8080, "protocol": "TCP"}},
			})
		})},
		{name: "headless without ports (E8)", want: Fail, says: "lack 10.1.0.1 (pod", tell: told(fields{"clusterIP": "None", "ports": nil}, func(s *story, _ cast) {
			s.endpoints("web")
		})},
		{name: "the label of a headless one is missing", want: Fail, says: "have the labels", tell: told(fields{"clusterIP": "None"}, func(s *story, c cast) {
			s.endpoints("web", subset([]any{at(c.one, one)}, []any{at(c.two, two)}))
		})},
		{name: "a hostname under the Service's name", want: Fail, says: "lack 10.1.0.1:8080", tell: told(nil, func(s *story, c cast) {
			s.reached(c.one, one, true, fields{"hostname": "first", "subdomain": "web"})
			s.endpoints("web", subset([]any{at(c.one, one)}, []any{at(c.two, two)}))
		})},
		{name: "the Service's first family is one that no pod has", want: Pass, tell: told(fields{"ipFamilies": []any{"IPv6", "IPv4"}}, func(s *story, _ cast) {
			s.endpoints("web")
		})},
		{name: "no pods, and empty Endpoints", want: Pass, tell: told(fields{"selector": fields{"app": "nobody"}}, func(s *story, _ cast) {
			s.endpoints("web")
		})},
		{name: "said to be truncated", want: Fail, says: "over-capacity", tell: told(fields{"selector": fields{"app": "nobody"}}, func(s *story, _ cast) {
			s.annotate(s.endpoints("web"), capacityAnnotation, "truncated")
		})},
		{name: "nothing but a Service that selects nothing", want: NotExercised, tell: told(fields{"selector": nil}, func(*story, cast) {})},
		{name: "one elsewhere (E6)", want: NotExercised, tell: told(fields{"type": "ExternalName"}, func(*story, cast) {})},
	})
}
