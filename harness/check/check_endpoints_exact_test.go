package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestEndpointsExact(t *testing.T) {
	// The test Service has a ready pod, a pod that is not ready, and pods that Endpoints must
	// not list.
	const one, two = "10.1.0.1", "10.1.0.2"
	type testObjects struct{ one, two *history.Object }
	// setUp commits and delivers the Service and its pods, and starts the phase settle.
	setUp := func(h *historyBuilder, spec fields) testObjects {
		h.service("web", spec)
		c := testObjects{
			one: h.podWithAddress(h.pod(nil, "web"), one, true, nil),
			two: h.podWithAddress(h.pod(nil, "web"), two, false, nil),
		}
		h.podWithAddress(h.pod(nil, "other"), "10.1.0.3", true, nil)
		h.podWithAddress(h.pod(nil, "web"), "", true, nil)
		h.failPod(h.podWithAddress(h.pod(nil, "web"), "10.1.0.4", true, nil))
		h.terminate(h.podWithAddress(h.pod(nil, "web"), "10.1.0.5", true, nil))
		h.phase(history.PhaseSettle)
		return c
	}
	withService := func(spec fields, build func(h *historyBuilder, c testObjects)) func(h *historyBuilder) {
		return func(h *historyBuilder) {
			build(h, setUp(h, spec))
			h.wait(time.Minute)
		}
	}
	runTestCases(t, "endpoints-exact", []testCase{
		{name: "exactly the pods of the Service", want: Pass, build: withService(nil, func(h *historyBuilder, c testObjects) {
			h.endpoints("web", subset([]any{at(c.one, one)}, []any{at(c.two, two)}))
		})},
		{name: "no Endpoints (mutant E4)", want: Fail, evidence: "Service ns/web: found no Endpoints", build: withService(nil, func(*historyBuilder, testObjects) {})},
		{name: "a ready pod listed as not ready (mutant E1)", want: Fail, evidence: "have the wrong readiness for 10.1.0.1:8080 (Pod ns/web-1)",
			build: withService(nil, func(h *historyBuilder, c testObjects) {
				h.endpoints("web", subset(nil, []any{at(c.one, one), at(c.two, two)}))
			})},
		{name: "an address is missing", want: Fail, evidence: "lack 10.1.0.2:8080", build: withService(nil, func(h *historyBuilder, c testObjects) {
			h.endpoints("web", subset([]any{at(c.one, one)}, nil))
		})},
		{name: "an extra address", want: Fail, evidence: "should not list 10.1.0.9:8080", build: withService(nil, func(h *historyBuilder, c testObjects) {
			h.endpoints("web", subset([]any{at(c.one, one), at(c.one, "10.1.0.9")}, []any{at(c.two, two)}))
		})},
		{name: "an address listed as ready and as not ready", want: Pass, build: withService(nil, func(h *historyBuilder, c testObjects) {
			h.endpoints("web", subset([]any{at(c.one, one), at(c.two, two)}, []any{at(c.two, two)}))
		})},
		{name: "publishNotReadyAddresses (publish-not-ready-addresses)", want: Pass, build: withService(fields{"publishNotReadyAddresses": true}, func(h *historyBuilder, c testObjects) {
			terminating := h.find("web-6")
			h.endpoints("web", subset([]any{at(c.one, one), at(c.two, two), at(terminating, "10.1.0.5")}, nil))
		})},
		{name: "a named port", want: Pass, build: withService(fields{"ports": []any{
			fields{"name": "web", "port": 80, "protocol": "TCP", "targetPort": "http"},
			fields{"name": "none", "port": 81, "protocol": "TCP", "targetPort": "metrics"},
		}}, func(h *historyBuilder, c testObjects) {
			h.endpoints("web", fields{
				"addresses": []any{at(c.one, one)}, "notReadyAddresses": []any{at(c.two, two)},
				"ports": []any{fields{"name": "web", "port": 8080, "protocol": "TCP"}},
			})
		})},
		{name: "headless without ports (mutant E8)", want: Fail, evidence: "lack 10.1.0.1 (Pod", build: withService(fields{"clusterIP": "None", "ports": nil}, func(h *historyBuilder, _ testObjects) {
			h.endpoints("web")
		})},
		{name: "the label of a headless Service is missing", want: Fail, evidence: "have the labels", build: withService(fields{"clusterIP": "None"}, func(h *historyBuilder, c testObjects) {
			h.endpoints("web", subset([]any{at(c.one, one)}, []any{at(c.two, two)}))
		})},
		{name: "a pod with a hostname and the Service as subdomain", want: Fail, evidence: "lack 10.1.0.1:8080", build: withService(nil, func(h *historyBuilder, c testObjects) {
			h.podWithAddress(c.one, one, true, fields{"hostname": "first", "subdomain": "web"})
			h.endpoints("web", subset([]any{at(c.one, one)}, []any{at(c.two, two)}))
		})},
		{name: "no pod has the Service's first IP family", want: Pass, build: withService(fields{"ipFamilies": []any{"IPv6", "IPv4"}}, func(h *historyBuilder, _ testObjects) {
			h.endpoints("web")
		})},
		{name: "no pods, and empty Endpoints", want: Pass, build: withService(fields{"selector": fields{"app": "nobody"}}, func(h *historyBuilder, _ testObjects) {
			h.endpoints("web")
		})},
		{name: "not truncated, but with the annotation", want: Fail, evidence: "over-capacity", build: withService(fields{"selector": fields{"app": "nobody"}}, func(h *historyBuilder, _ testObjects) {
			h.annotate(h.endpoints("web"), objects.OverCapacityAnnotation, "truncated")
		})},
		{name: "a Service without a selector", want: NotExercised, build: withService(fields{"selector": nil}, func(*historyBuilder, testObjects) {})},
		{name: "a Service of type ExternalName (mutant E6)", want: NotExercised, build: withService(fields{"type": "ExternalName"}, func(*historyBuilder, testObjects) {})},
	})
}
