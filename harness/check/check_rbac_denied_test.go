package check

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestRBACDenied(t *testing.T) {
	// deny records a request with the given verb that the authorizer refuses. The parameter
	// fault is Response.Fault.
	deny := func(h *historyBuilder, verb, fault string) {
		step := h.request(history.Request{Verb: verb, Resource: "secrets", Namespace: namespace, Name: "s"})
		h.append(history.Record{Response: &history.Response{ID: step.request.ID, Code: 403, ServerCode: 403, Reached: true, Reason: "Forbidden", Denied: true, Fault: fault}})
	}
	runTestCases(t, "rbac-denied", []testCase{
		{name: "refused each time", want: Fail, evidence: "the API server refused 3 requests of subject-0 to get secrets in namespace ns", build: func(h *historyBuilder) {
			for range 3 {
				deny(h, "get", "")
			}
		}},
		{name: "another verb succeeded", want: Fail, evidence: "refused 2 requests of subject-0 to update secrets", build: func(h *historyBuilder) {
			h.request(history.Request{Verb: "get", Resource: "secrets", Namespace: namespace, Name: "s"}).answered(200)
			deny(h, "update", "")
			deny(h, "update", "")
		}},
		{name: "refused while the API server started", want: Pass, build: func(h *historyBuilder) {
			deny(h, "get", "")
			deny(h, "get", "")
			h.request(history.Request{Verb: "get", Resource: "secrets", Namespace: namespace, Name: "s"}).answered(200)
		}},
		{name: "refused while the API server started, and not sent again", want: Pass, build: func(h *historyBuilder) {
			h.request(history.Request{Verb: "update", Resource: "secrets", Namespace: namespace, Name: "s"}).answered(200)
			deny(h, "get", "")
			deny(h, "update", "")
			h.wait(transientSpan / 2)
			deny(h, "get", "")
		}},
		{name: "refused long after the API server started", want: Fail, evidence: "refused 2 requests of subject-0 to get secrets", build: func(h *historyBuilder) {
			h.request(history.Request{Verb: "update", Resource: "secrets", Namespace: namespace, Name: "s"}).answered(200)
			deny(h, "update", "")
			h.wait(2 * transientSpan)
			deny(h, "get", "")
			deny(h, "get", "")
		}},
		{name: "a probe for an optional API", want: Pass, build: func(h *historyBuilder) { deny(h, "get", "") }},
		{name: "a fault made the responses", want: Pass, build: func(h *historyBuilder) {
			deny(h, "get", "api-error")
			deny(h, "get", "api-error")
		}},
		{name: "admission control refuses", want: Pass, build: func(h *historyBuilder) {
			for range 2 {
				h.request(history.Request{Verb: "create", Resource: "secrets", Namespace: namespace}).answered(403)
			}
		}},
	})
}
