package check

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestCacheSynced(t *testing.T) {
	// starts begins a process that has listed every resource except the one in the parameter
	// missing. It returns the list request for that resource, which has no response yet.
	starts := func(h *historyBuilder, missing string) *requestStep {
		h.begin("subject-1")
		for _, resource := range []string{replicaSets, controllers, objects.PodResource, objects.DeploymentResource, objects.ServiceResource, objects.EndpointsResource} {
			if resource != missing {
				h.list(resource)
			}
		}
		return h.request(history.Request{Verb: "list", Resource: missing})
	}
	owner := func(h *historyBuilder) *history.Object { return h.replicaSet("web", 1) }
	runTestCases(t, "cache-synced", []testCase{
		{name: "creates a pod after the caches have synced", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			succeed(h.create(rs))
		}},
		{name: "creates a pod before the pod cache has synced (mutant R28)", want: Fail, evidence: "before its cache of pods had synced", build: func(h *historyBuilder) {
			rs := owner(h)
			starts(h, objects.PodResource)
			h.create(rs).answered(201)
		}},
		{name: "writes a status before the pod cache has synced", want: Fail, evidence: "before its cache of pods had synced", build: func(h *historyBuilder) {
			rs := owner(h)
			starts(h, objects.PodResource)
			h.updateStatus(rs, fields{"replicas": 0}).answered(200)
		}},
		{name: "creates a ReplicaSet before the ReplicaSet cache has synced (mutant D5)", want: Fail, evidence: "before its cache of replicasets.apps had synced", build: func(h *historyBuilder) {
			h.deployment("web", 1, rollingUpdate(1, 0))
			starts(h, objects.ReplicaSetResource)
			h.createReplicaSet("web", "v1", 1).answered(409)
		}},
		{name: "writes Endpoints before the pod cache has synced", want: Fail, evidence: "before its cache of pods had synced", build: func(h *historyBuilder) {
			h.service("web", nil)
			starts(h, objects.PodResource)
			h.writeEndpoints("update", "web").answered(200)
		}},
		{name: "never lists pods", want: notFailed, build: func(h *historyBuilder) {
			h.service("web", nil)
			h.begin("subject-1")
			h.list(objects.ServiceResource)
			h.writeEndpoints("update", "web").answered(200)
		}},
		{name: "a repeated list succeeds before the write", want: Pass, build: func(h *historyBuilder) {
			rs := owner(h)
			starts(h, objects.PodResource).answered(500)
			h.list(objects.PodResource)
			succeed(h.create(rs))
		}},
		{name: "lists pods by label only", want: notFailed, build: func(h *historyBuilder) {
			rs := owner(h)
			h.begin("subject-1")
			h.list(replicaSets)
			h.listPart(objects.PodResource, "labelSelector=app%3Dweb", nil)
			h.updateStatus(rs, fields{"replicas": 0}).answered(200)
		}},
	})
}
