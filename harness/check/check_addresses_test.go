package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestAddresses(t *testing.T) {
	const one, two = "10.1.0.1", "10.1.0.2"
	type testObjects struct{ service, one, two *history.Object }
	// setUp delivers a Service, a ready pod and a pod that is not ready. It then waits until
	// they are no longer recent.
	setUp := func(h *historyBuilder) testObjects {
		c := testObjects{service: h.service("web", nil)}
		c.one = h.podWithAddress(h.pod(nil, "web"), one, true, nil)
		c.two = h.podWithAddress(h.pod(nil, "web"), two, false, nil)
		h.wait(3 * time.Second)
		return c
	}
	withService := func(build func(h *historyBuilder, c testObjects)) func(h *historyBuilder) {
		return func(h *historyBuilder) { build(h, setUp(h)) }
	}
	both := func(c testObjects) fields { return subset([]any{at(c.one, one)}, []any{at(c.two, two)}) }
	runTestCases(t, "addresses", []testCase{
		{name: "lists its pods as they are in the cache", want: Pass, build: withService(func(h *historyBuilder, c testObjects) { h.publish("web", both(c)).answered(201) })},
		{name: "omits a pod", want: Fail, evidence: "list nothing for pod ns/web-2", build: withService(func(h *historyBuilder, c testObjects) {
			h.publish("web", subset([]any{at(c.one, one)}, nil)).answered(201)
		})},
		{name: "lists a pod that is not ready as ready", want: Fail, evidence: "list ready 10.1.0.2:8080 (Pod ns/web-2) for pod ns/web-2", build: withService(func(h *historyBuilder, c testObjects) {
			h.publish("web", subset([]any{at(c.one, one), at(c.two, two)}, nil)).answered(201)
		})},
		{name: "lists a pod as not ready that became ready within the lag", want: Pass, build: withService(func(h *historyBuilder, c testObjects) {
			h.podWithAddress(c.two, two, true, nil)
			h.publish("web", both(c)).answered(201)
		})},
		{name: "lists a pod as not ready that became ready long ago", want: Fail, evidence: "for pod ns/web-2", build: withService(func(h *historyBuilder, c testObjects) {
			h.podWithAddress(c.two, two, true, nil)
			h.wait(3 * time.Second)
			h.publish("web", both(c)).answered(201)
		})},
		{name: "lists a pod as not ready after another write was answered since it became ready", want: Fail, evidence: "for pod ns/web-2", build: withService(func(h *historyBuilder, c testObjects) {
			ready := subset([]any{at(c.one, one), at(c.two, two)}, nil)
			h.podWithAddress(c.two, two, true, nil)
			for range 10 {
				h.publish("web", ready).answered(500)
				h.wait(200 * time.Millisecond)
			}
			h.publish("web", both(c)).answered(201)
		})},
		{name: "client-go repeats a write that was decided before the pod became ready", want: Pass, build: withService(func(h *historyBuilder, c testObjects) {
			h.publish("web", both(c)).deferred(503)
			h.podWithAddress(c.two, two, true, nil)
			h.wait(1500 * time.Millisecond)
			h.publish("web", both(c)).answered(201)
		})},
		{name: "lists a pod that has been terminating for long", want: Fail, evidence: "for pod ns/web-1", build: withService(func(h *historyBuilder, c testObjects) {
			h.deliver(h.terminate(c.one))
			h.wait(3 * time.Second)
			h.publish("web", both(c)).answered(201)
		})},
		{name: "lists a pod that was deleted within the lag", want: Pass, build: withService(func(h *historyBuilder, c testObjects) {
			h.remove(c.one)
			h.publish("web", both(c)).answered(201)
		})},
		{name: "lists a pod that was deleted long ago", want: Fail, evidence: "for pod ns/web-1", build: withService(func(h *historyBuilder, c testObjects) {
			h.remove(c.one)
			h.wait(3 * time.Second)
			h.publish("web", both(c)).answered(201)
		})},
		{name: "lists a pod that was never in the cache", want: Fail, evidence: "list ready 10.1.0.9:8080", build: withService(func(h *historyBuilder, c testObjects) {
			h.publish("web", subset([]any{at(c.one, one), at(h.pod(nil, "web"), "10.1.0.9")}, []any{at(c.two, two)})).answered(201)
		})},
		{name: "matches the Service's selector of a moment ago", want: Pass, build: withService(func(h *historyBuilder, c testObjects) {
			h.deliver(h.commit(history.Modified, edited(*c.service, "spec", fields{"selector": fields{"app": "other"}})))
			h.publish("web", both(c)).answered(201)
		})},
		{name: "matches a selector that the Service has not had for long", want: Fail, evidence: "for pod ns/web-1", build: withService(func(h *historyBuilder, c testObjects) {
			h.deliver(h.commit(history.Modified, edited(*c.service, "spec", fields{"selector": fields{"app": "other"}})))
			h.wait(3 * time.Second)
			h.publish("web", both(c)).answered(201)
		})},
		{name: "lacks the Service's labels", want: Fail, evidence: "have labels", build: withService(func(h *historyBuilder, c testObjects) {
			o := endpointsOf("web", both(c))
			o.Labels = nil
			h.request(history.Request{Verb: "create", Resource: objects.EndpointsResource, Namespace: namespace, Object: &o}).answered(201)
		})},
		{name: "two addresses with the annotation for truncated Endpoints", want: Fail, evidence: "over-capacity=\"truncated\"", build: withService(func(h *historyBuilder, c testObjects) {
			o := endpointsOf("web", both(c))
			o.Annotations = map[string]string{objects.OverCapacityAnnotation: "truncated"}
			h.request(history.Request{Verb: "create", Resource: objects.EndpointsResource, Namespace: namespace, Object: &o}).answered(201)
		})},
	})
}

// writeEndpoints waits for 3 s, and then records a successful update of Endpoints with a trigger time.
func writeEndpoints(h *historyBuilder, o history.Object, trigger string) *history.Object {
	o.Annotations = map[string]string{objects.TriggerTimeAnnotation: trigger}
	h.wait(3 * time.Second)
	step := h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: &o})
	written := h.commit(history.Modified, o)
	step.made = written
	step.answered(200)
	h.deliver(written)
	return written
}

// repeatedTrigger builds two writes of Endpoints with the same trigger time. Between them, the function
// change runs with the Service and its only pod.
func repeatedTrigger(change func(h *historyBuilder, service, pod *history.Object)) func(*historyBuilder) {
	return func(h *historyBuilder) {
		service := h.service("web", nil)
		pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
		const trigger = "2001-09-09T01:46:40Z"
		written := writeEndpoints(h, *h.endpoints("web", subset([]any{at(pod, "10.1.0.1")}, nil)), trigger)
		h.wait(3 * time.Second)
		change(h, service, pod)
		writeEndpoints(h, *written, trigger)
	}
}

func TestAddressesKeepAnnotations(t *testing.T) {
	// updated builds an update of Endpoints that have the annotation note=mine, a finalizer and an owner. The
	// argument change changes the Endpoints before the process writes them.
	updated := func(change func(o *history.Object)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			h.service("web", nil)
			pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			base := *h.endpoints("web", subset([]any{at(pod, "10.1.0.1")}, nil))
			base.Annotations = map[string]string{"note": "mine"}
			base.Finalizers, base.Owners = []string{"example.com/kept"}, []history.Owner{{Kind: "ConfigMap", Name: "mine", UID: "c"}}
			o := *h.commit(history.Modified, base)
			h.deliver(&o)
			change(&o)
			h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: &o}).answered(200)
		}
	}
	republished := func(annotations map[string]string) func(*historyBuilder) {
		return updated(func(o *history.Object) { o.Annotations = annotations })
	}
	runTestCases(t, "addresses", []testCase{
		{name: "keeps an annotation of a user", want: Pass, build: republished(map[string]string{"note": "mine", objects.TriggerTimeAnnotation: "2001-09-09T01:46:40.5Z"})},
		{name: "loses an annotation of a user", want: Fail, evidence: `wrote Endpoints ns/web with annotation note=""`, build: republished(nil)},
		{name: "loses a finalizer of a user", want: Fail, evidence: `with the finalizers []`, build: updated(func(o *history.Object) { o.Finalizers = nil })},
		{name: "loses an owner that a user has set", want: Fail, evidence: `with 0 ownerReferences`, build: updated(func(o *history.Object) { o.Owners = nil })},
		{name: "writes a trigger time that is no time", want: Fail, evidence: `annotation endpoints.kubernetes.io/last-change-trigger-time="now"`,
			build: republished(map[string]string{"note": "mine", objects.TriggerTimeAnnotation: "now"})},
		{name: "updates Endpoints without a resourceVersion", want: Fail, evidence: "wrote Endpoints ns/web with no resourceVersion", build: func(h *historyBuilder) {
			h.service("web", nil)
			pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			o := *h.endpoints("web", subset([]any{at(pod, "10.1.0.1")}, nil))
			o.Version = 0
			h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: &o}).answered(200)
		}},
		{name: "repeats a trigger time after a change of the Service", want: Fail, evidence: `annotation endpoints.kubernetes.io/last-change-trigger-time="2001-09-09T01:46:40Z"`,
			build: repeatedTrigger(func(h *historyBuilder, service, _ *history.Object) {
				h.deliver(h.commit(history.Modified, edited(*service, "spec", fields{"sessionAffinity": "None"})))
			})},
		{name: "repeats a trigger time after a slow write, during which a pod has changed", want: Pass, build: func(h *historyBuilder) {
			h.service("web", nil)
			pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			base := *h.endpoints("web", subset([]any{at(pod, "10.1.0.1")}, nil))
			base.Annotations = map[string]string{objects.TriggerTimeAnnotation: "2001-09-09T01:46:40Z"}
			update := func(o history.Object) *requestStep {
				return h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: &o})
			}
			h.wait(3 * time.Second)
			step := update(base)
			other := h.podWithAddress(h.pod(nil, "web"), "10.1.0.2", true, nil)
			h.wait(3 * time.Second)
			written := *h.commit(history.Modified, base)
			step.answered(200)
			h.deliver(&written)
			written.Body = encoded(fields{"subsets": []any{subset([]any{at(pod, "10.1.0.1"), at(other, "10.1.0.2")}, nil)}})
			update(written).answered(200)
		}},
		{name: "repeats a trigger time after a pod has changed", want: Pass,
			build: repeatedTrigger(func(h *historyBuilder, _, pod *history.Object) {
				h.podWithAddress(pod, "10.1.0.1", false, nil)
				h.podWithAddress(pod, "10.1.0.1", true, nil)
			})},
	})
}

// becomesUnready builds a write of Endpoints with the given trigger time after their only pod has become
// not ready. The pod was ready since the time in the argument before. The function change runs between the
// event of the pod and the write, with the Service and the first written version of the Endpoints.
func becomesUnready(before, trigger string, change func(h *historyBuilder, service, written *history.Object)) func(*historyBuilder) {
	return func(h *historyBuilder) {
		service := h.service("web", nil)
		pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
		condition := func(status, at string) {
			pod = h.commit(history.Modified, edited(*pod, "status", fields{"conditions": []any{fields{"type": "Ready", "status": status, "lastTransitionTime": at}}}))
			h.deliver(pod)
		}
		condition("True", before)
		address := []any{at(pod, "10.1.0.1")}
		first := writeEndpoints(h, *h.endpoints("web", subset(address, nil)), "2001-09-09T01:46:40Z")
		h.wait(3 * time.Second)
		condition("False", "2001-09-09T01:46:50Z")
		if change != nil {
			change(h, service, first)
		}
		base := h.listed(objects.EndpointsResource)[0]
		base.Body = encoded(fields{"subsets": []any{subset(nil, address)}})
		writeEndpoints(h, base, trigger)
	}
}

// updateEndpoints records an update of Endpoints without a response.
func updateEndpoints(h *historyBuilder, o history.Object) *requestStep {
	return h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: &o})
}

func TestAddressesTriggerTime(t *testing.T) {
	const before, change, after = "2001-09-09T01:46:40Z", "2001-09-09T01:46:50Z", "2001-09-09T01:46:51Z"
	published := func(h *historyBuilder, service, _ *history.Object) {
		for _, value := range []bool{true, false} {
			service = h.commit(history.Modified, edited(*service, "spec", fields{"publishNotReadyAddresses": value}))
			h.deliver(service)
		}
	}
	runTestCases(t, "addresses", []testCase{
		{name: "at the change", want: Pass, build: becomesUnready(before, change, nil)},
		{name: "before the change", want: Pass, build: becomesUnready(before, "2001-09-09T01:46:45Z", nil)},
		{name: "after the change, which has the time of the change before", want: Pass, build: becomesUnready(change, after, nil)},
		{name: "after the change, which Endpoints with addresses that are not ready did not show", want: Pass, build: becomesUnready(before, after, published)},
		{name: "after the change", want: Fail, evidence: `annotation endpoints.kubernetes.io/last-change-trigger-time="2001-09-09T01:46:51Z"`, build: becomesUnready(before, after, nil)},
	})
}

func TestAddressesWithoutTriggerTime(t *testing.T) {
	const before, change = "2001-09-09T01:46:40Z", "2001-09-09T01:46:50Z"
	runTestCases(t, "addresses", []testCase{
		{name: "after a change of readiness", want: Fail, evidence: "no annotation endpoints.kubernetes.io/last-change-trigger-time", build: becomesUnready(before, "", nil)},
		{name: "after a change of readiness that has the time of the change before", want: Pass, build: becomesUnready(change, "", nil)},
		{name: "after a change of readiness that is earlier than the change before", want: Pass, build: becomesUnready("2001-09-09T01:46:55Z", "", nil)},
		{name: "after a failed write", want: Pass, build: becomesUnready(before, "", func(h *historyBuilder, _, written *history.Object) {
			updateEndpoints(h, *written).answered(500)
		})},
		{name: "after a write that client-go may send again", want: Pass, build: becomesUnready(before, "", func(h *historyBuilder, _, written *history.Object) {
			updateEndpoints(h, *written).deferred(503)
		})},
		{name: "after a write without a response", want: Pass, build: becomesUnready(before, "", func(h *historyBuilder, _, written *history.Object) {
			updateEndpoints(h, *written)
		})},
		{name: "after a failed connection", want: Pass, build: becomesUnready(before, "", func(h *historyBuilder, _, _ *history.Object) {
			h.request(history.Request{Verb: "get", Resource: objects.ServiceResource, Namespace: namespace, Name: "other"}).lost()
		})},
		{name: "after the end of a watch", want: Pass, build: becomesUnready(before, "", func(h *historyBuilder, _, _ *history.Object) {
			h.append(history.Record{WatchClosed: &history.WatchClosed{ID: h.watches[objects.ServiceResource], Subject: h.subject, Resource: objects.ServiceResource}})
			h.watch(objects.ServiceResource, "")
		})},
		{name: "after a pod has left the Service with another time of its readiness", want: Pass, build: func(h *historyBuilder) {
			h.service("web", nil)
			stays := h.podWithAddress(h.pod(nil, "web"), "10.1.0.2", true, nil)
			pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			ready := func(since string, labels map[string]string) {
				next := edited(*pod, "status", fields{"conditions": []any{fields{"type": "Ready", "status": "True", "lastTransitionTime": since}}})
				next.Labels = labels
				pod = h.commit(history.Modified, next)
				h.deliver(pod)
			}
			ready(before, pod.Labels)
			writeEndpoints(h, *h.endpoints("web", subset([]any{at(pod, "10.1.0.1"), at(stays, "10.1.0.2")}, nil)), before)
			h.wait(3 * time.Second)
			ready(change, map[string]string{"app": "other"})
			base := h.listed(objects.EndpointsResource)[0]
			base.Body = encoded(fields{"subsets": []any{subset([]any{at(stays, "10.1.0.2")}, nil)}})
			writeEndpoints(h, base, "")
		}},
		{name: "after a write of another client", want: Pass, build: becomesUnready(before, "", func(h *historyBuilder, _, written *history.Object) {
			h.deliver(h.commit(history.Modified, *written))
		})},
	})
}

// publishesNewPod builds a write of Endpoints without a trigger time that adds a pod to another one. The
// new pod reaches the cache after the given time since the write before.
func publishesNewPod(after time.Duration, owned bool, annotations map[string]string, change func(h *historyBuilder, service *history.Object)) func(*historyBuilder) {
	return func(h *historyBuilder) {
		service := h.service("web", nil)
		old := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
		first := writeEndpoints(h, *h.endpoints("web", subset([]any{at(old, "10.1.0.1")}, nil)), "2001-09-09T01:46:40Z")
		h.wait(after)
		var owner *history.Object
		if owned {
			owner = h.replicaSet("set", 1)
		}
		fresh := edited(*h.pod(owner, "web"), "spec", fields{"nodeName": "node-0"})
		pod := h.commit(history.Modified, edited(fresh, "status", fields{
			"podIP": "10.1.0.2", "podIPs": []any{fields{"ip": "10.1.0.2"}}, "phase": "Running", "conditions": []any{fields{"type": "Ready", "status": "True", "lastTransitionTime": "2001-09-09T01:46:41Z"}},
		}))
		h.deliver(pod)
		if change != nil {
			change(h, service)
		}
		first.Body = encoded(fields{"subsets": []any{subset([]any{at(old, "10.1.0.1"), at(pod, "10.1.0.2")}, nil)}})
		first.Annotations = annotations
		h.wait(3 * time.Second)
		updateEndpoints(h, *first).answered(200)
	}
}

func TestAddressesWithoutTriggerTimeOfNewPod(t *testing.T) {
	const long = 3 * time.Second
	trigger := map[string]string{objects.TriggerTimeAnnotation: "2001-09-09T01:46:41Z"}
	revised := func(h *historyBuilder, service *history.Object) {
		h.deliver(h.commit(history.Modified, edited(*service, "spec", fields{"sessionAffinity": "None"})))
	}
	runTestCases(t, "addresses", []testCase{
		{name: "adds a pod without a trigger time", want: Fail, evidence: "no annotation endpoints.kubernetes.io/last-change-trigger-time", build: publishesNewPod(long, true, nil, nil)},
		{name: "adds a pod with a trigger time", want: Pass, build: publishesNewPod(long, true, trigger, nil)},
		{name: "adds a pod that appeared when the cache may not have contained the last write", want: Pass, build: publishesNewPod(lag/2, true, nil, nil)},
		{name: "adds a pod without an owner, whose name another pod may have had", want: Pass, build: publishesNewPod(long, false, nil, nil)},
		{name: "adds a pod after a change of the Service", want: Pass, build: publishesNewPod(long, true, nil, revised)},
	})
}

// TestAddressesWithoutNewPod tests Endpoints that omit a pod whose first cached version is
// already ready.
func TestAddressesWithoutNewPod(t *testing.T) {
	const one, two = "10.1.0.1", "10.1.0.2"
	setUp := func(h *historyBuilder) *history.Object {
		h.service("web", nil)
		listed := h.podWithAddress(h.pod(nil, "web"), one, true, nil)
		h.wait(3 * time.Second)
		fresh := edited(*h.pod(nil, "web"), "spec", fields{"nodeName": "node-1"})
		h.commit(history.Modified, edited(fresh, "status", fields{
			"podIP": two, "podIPs": []any{fields{"ip": two}}, "phase": "Running", "conditions": []any{condition("Ready", "True", "", 1)},
		}))
		h.list(objects.PodResource)
		return listed
	}
	runTestCases(t, "addresses", []testCase{
		{name: "omits a pod that was listed a moment ago", want: Pass, build: func(h *historyBuilder) {
			h.publish("web", subset([]any{at(setUp(h), one)}, nil)).answered(201)
		}},
		{name: "omits a pod that was listed a minute ago", want: Fail, evidence: "list nothing for pod", build: func(h *historyBuilder) {
			listed := setUp(h)
			h.wait(time.Minute)
			h.publish("web", subset([]any{at(listed, one)}, nil)).answered(201)
		}},
	})
}

// endpointsOf returns Endpoints with the given name and subsets, and with the labels that the
// Endpoints controller sets.
func endpointsOf(name string, subsets ...any) history.Object {
	return history.Object{
		Ref:    history.Ref{Namespace: namespace, Name: name},
		Labels: map[string]string{objects.ManagedByLabel: objects.EndpointControllerName},
		Body:   encoded(fields{"subsets": subsets}),
	}
}
