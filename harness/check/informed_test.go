package check

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestInformed(t *testing.T) {
	// starts begins a life in which all but one resource has been listed, of which the
	// list is under way.
	starts := func(s *story, awaited string) *ask {
		s.begin("subject-1")
		for _, resource := range []string{replicaSets, controllers, podResource, deploymentResource, serviceResource, endpointsResource} {
			if resource != awaited {
				s.list(resource)
			}
		}
		return s.request(history.Request{Verb: "list", Resource: awaited})
	}
	owner := func(s *story) *history.Object { return s.replicaSet("web", 1) }
	judge(t, "cache-synced", []tale{
		{name: "all is known", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			succeed(s.create(rs))
		}},
		{name: "a pod is made before pods are known (R28)", want: Fail, says: "before it had been told which pods there are", tell: func(s *story) {
			rs := owner(s)
			starts(s, podResource)
			s.create(rs).answered(201)
		}},
		{name: "a status is written before pods are known", want: Fail, says: "which pods there are", tell: func(s *story) {
			rs := owner(s)
			starts(s, podResource)
			s.says(rs, fields{"replicas": 0}).answered(200)
		}},
		{name: "a ReplicaSet is made before they are known (D5)", want: Fail, says: "which replicasets.apps there are", tell: func(s *story) {
			s.deployment("web", 1, rollingUpdate(1, 0))
			starts(s, setResource)
			s.make("web", "v1", 1).answered(409)
		}},
		{name: "Endpoints are written before pods are known", want: Fail, says: "which pods there are", tell: func(s *story) {
			s.service("web", nil)
			starts(s, podResource)
			s.writeEndpoints("update", "web").answered(200)
		}},
		{name: "one that never asks goes by something else", want: legal, tell: func(s *story) {
			s.service("web", nil)
			s.begin("subject-1")
			s.list(serviceResource)
			s.writeEndpoints("update", "web").answered(200)
		}},
		{name: "the list has come since", want: Pass, tell: func(s *story) {
			rs := owner(s)
			starts(s, podResource).answered(500)
			s.list(podResource)
			succeed(s.create(rs))
		}},
		{name: "a list of some is no news of all", want: legal, tell: func(s *story) {
			rs := owner(s)
			s.begin("subject-1")
			s.list(replicaSets)
			s.listPart(podResource, "labelSelector=app%3Dweb", nil)
			s.says(rs, fields{"replicas": 0}).answered(200)
		}},
	})
}
