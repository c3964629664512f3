package check

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestNeedlessWrites(t *testing.T) {
	// sends writes an object from a version, and is answered with a version.
	sends := func(s *story, from, now *history.Object, code int) {
		a := s.request(history.Request{Verb: "update", Resource: from.Resource, Subresource: "status", Namespace: namespace, Name: from.Name, Object: from})
		a.made = now
		a.answered(code)
	}
	// republishes writes Endpoints anew, of as many pods as fit, with another trigger
	// time and what change does to them.
	republishes := func(s *story, n, pods int, change func(*history.Object)) {
		service := s.service("web", nil)
		var addresses []any
		for i := range pods {
			ip := fmt.Sprintf("10.1.%d.%d", i/256, i%256)
			addresses = append(addresses, at(s.reached(s.pod(nil, "web"), ip, true, nil), ip))
		}
		now := s.endpoints("web", subset(addresses[:min(pods, addressesMax)], nil))
		s.wait(3 * time.Second)
		for i := range n {
			next := *now
			next.Labels = maps.Clone(now.Labels)
			next.Annotations = map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": time.Unix(int64(i), 0).String()}
			change(&next)
			if n := next.Labels["n"]; n != "" {
				labelled := *service
				labelled.Labels = map[string]string{"n": n}
				s.deliver(s.commit(history.Modified, labelled))
			}
			a := s.request(history.Request{Verb: "update", Resource: endpointsResource, Namespace: namespace, Name: "web", Object: &next})
			now = s.commit(history.Modified, next)
			a.made = now
			a.answered(200)
			s.deliver(now)
		}
	}
	// reported is a ReplicaSet whose status says that it has no pods.
	reported := func(s *story) *history.Object {
		told(s, 1)
		rs := s.status("web", 0)
		s.deliver(rs)
		return rs
	}
	judge(t, "needless-writes", []tale{
		{name: "writes what differs", want: Pass, tell: func(s *story) {
			rs := reported(s)
			for range 20 {
				next := s.status("web", 0)
				sends(s, rs, next, 200)
				rs = next
				s.deliver(rs)
			}
		}},
		{name: "writes what is there", want: Fail, says: "wrote replicasets.apps ns/web 6 times though nothing in it was to change", tell: func(s *story) {
			rs := reported(s)
			for range 6 {
				sends(s, rs, rs, 200)
			}
		}},
		{name: "writes what is there, from no version", want: Fail, says: "wrote replicasets.apps ns/web 6 times", tell: func(s *story) {
			rs := reported(s)
			blind := *rs
			blind.Version = 0
			for range 6 {
				sends(s, &blind, rs, 200)
			}
		}},
		{name: "does so now and then", want: Pass, tell: func(s *story) {
			rs := reported(s)
			for range 5 {
				sends(s, rs, rs, 200)
			}
		}},
		{name: "sends a status again after a conflict", want: Pass, tell: func(s *story) {
			rs := reported(s)
			for range 20 {
				sends(s, rs, nil, 409)
				sends(s, rs, rs, 200)
			}
		}},
		{name: "writes of a Deployment that it could not make its ReplicaSet", want: Pass, tell: func(s *story) {
			d := s.deployment("web", 10, nil)
			for range 20 {
				s.make("web", "v1", 10).answered(403)
				a := s.request(history.Request{Verb: "update", Resource: deploymentResource, Subresource: "status", Namespace: namespace, Name: "web", Object: d})
				a.made = d
				a.answered(200)
			}
		}},
		{name: "writes of a Deployment what is there", want: Fail, says: "wrote deployments.apps ns/web 6 times", tell: func(s *story) {
			d := s.deployment("web", 10, nil)
			for range 6 {
				a := s.request(history.Request{Verb: "update", Resource: deploymentResource, Subresource: "status", Namespace: namespace, Name: "web", Object: d})
				a.made = d
				a.answered(200)
			}
		}},
		{name: "another life counts anew", want: Pass, tell: func(s *story) {
			rs := reported(s)
			for range 3 {
				for range 5 {
					sends(s, rs, rs, 200)
				}
				s.restart(s.subject)
			}
		}},
		{name: "gives Endpoints a new trigger time alone", want: Fail, says: "wrote endpoints ns/web 6 times", tell: func(s *story) {
			republishes(s, 6, 1, func(*history.Object) {})
		}},
		{name: "labels them anew", want: Pass, tell: func(s *story) {
			n := 0
			republishes(s, 20, 1, func(o *history.Object) {
				n++
				o.Labels["n"] = time.Duration(n).String()
			})
		}},
		{name: "truncated Endpoints are sent each time (trap 32)", want: Pass, tell: func(s *story) {
			republishes(s, 20, addressesMax+1, func(o *history.Object) { o.Annotations[capacityAnnotation] = "truncated" })
		}},
	})
}
