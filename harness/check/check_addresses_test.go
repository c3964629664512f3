package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestAddresses(t *testing.T) {
	const one, two = "10.1.0.1", "10.1.0.2"
	type cast struct{ service, one, two *history.Object }
	// begin tells of a Service with a ready pod and another that is not, long ago.
	begin := func(s *story) cast {
		c := cast{service: s.service("web", nil)}
		c.one = s.reached(s.pod(nil, "web"), one, true, nil)
		c.two = s.reached(s.pod(nil, "web"), two, false, nil)
		s.wait(3 * time.Second)
		return c
	}
	told := func(tell func(s *story, c cast)) func(s *story) {
		return func(s *story) { tell(s, begin(s)) }
	}
	both := func(c cast) fields { return subset([]any{at(c.one, one)}, []any{at(c.two, two)}) }
	judge(t, "addresses", []tale{
		{name: "as its pods are", want: Pass, tell: told(func(s *story, c cast) { s.publish("web", both(c)).answered(201) })},
		{name: "a pod is left out", want: Fail, says: "list nothing of pod web-2", tell: told(func(s *story, c cast) {
			s.publish("web", subset([]any{at(c.one, one)}, nil)).answered(201)
		})},
		{name: "one that is not ready is listed as if it were", want: Fail, says: "list ready 10.1.0.2:8080 (pod Pod ns/web-2) of pod web-2", tell: told(func(s *story, c cast) {
			s.publish("web", subset([]any{at(c.one, one), at(c.two, two)}, nil)).answered(201)
		})},
		{name: "it was not ready until a moment ago", want: Pass, tell: told(func(s *story, c cast) {
			s.reached(c.two, two, true, nil)
			s.publish("web", both(c)).answered(201)
		})},
		{name: "it has been ready for long", want: Fail, says: "of pod web-2", tell: told(func(s *story, c cast) {
			s.reached(c.two, two, true, nil)
			s.wait(3 * time.Second)
			s.publish("web", both(c)).answered(201)
		})},
		{name: "it became ready, and another write has been answered since", want: Fail, says: "of pod web-2", tell: told(func(s *story, c cast) {
			ready := subset([]any{at(c.one, one), at(c.two, two)}, nil)
			s.reached(c.two, two, true, nil)
			for range 10 {
				s.publish("web", ready).answered(500)
				s.wait(200 * time.Millisecond)
			}
			s.publish("web", both(c)).answered(201)
		})},
		{name: "the client repeats what was decided before", want: Pass, tell: told(func(s *story, c cast) {
			s.publish("web", both(c)).deferred(503)
			s.reached(c.two, two, true, nil)
			s.wait(1500 * time.Millisecond)
			s.publish("web", both(c)).answered(201)
		})},
		{name: "a pod that is being deleted", want: Fail, says: "of pod web-1", tell: told(func(s *story, c cast) {
			s.deliver(s.terminate(c.one))
			s.wait(3 * time.Second)
			s.publish("web", both(c)).answered(201)
		})},
		{name: "a pod that has just gone", want: Pass, tell: told(func(s *story, c cast) {
			s.remove(c.one)
			s.publish("web", both(c)).answered(201)
		})},
		{name: "a pod that has long gone", want: Fail, says: "of pod web-1", tell: told(func(s *story, c cast) {
			s.remove(c.one)
			s.wait(3 * time.Second)
			s.publish("web", both(c)).answered(201)
		})},
		{name: "a pod that nobody has shown it", want: Fail, says: "list ready 10.1.0.9:8080", tell: told(func(s *story, c cast) {
			s.publish("web", subset([]any{at(c.one, one), at(s.pod(nil, "web"), "10.1.0.9")}, []any{at(c.two, two)})).answered(201)
		})},
		{name: "the Service had another selector a moment ago", want: Pass, tell: told(func(s *story, c cast) {
			s.deliver(s.commit(history.Modified, edited(*c.service, "spec", fields{"selector": fields{"app": "other"}})))
			s.publish("web", both(c)).answered(201)
		})},
		{name: "it has had it for long", want: Fail, says: "of pod web-1", tell: told(func(s *story, c cast) {
			s.deliver(s.commit(history.Modified, edited(*c.service, "spec", fields{"selector": fields{"app": "other"}})))
			s.wait(3 * time.Second)
			s.publish("web", both(c)).answered(201)
		})},
		{name: "without the Service's labels", want: Fail, says: "have the labels", tell: told(func(s *story, c cast) {
			o := endpointsOf("web", both(c))
			o.Labels = nil
			s.request(history.Request{Verb: "create", Resource: endpointsResource, Namespace: namespace, Object: &o}).answered(201)
		})},
		{name: "said to be truncated, of two", want: Fail, says: "over-capacity=\"truncated\"", tell: told(func(s *story, c cast) {
			o := endpointsOf("web", both(c))
			o.Annotations = map[string]string{capacityAnnotation: "truncated"}
			s.request(history.Request{Verb: "create", Resource: endpointsResource, Namespace: namespace, Object: &o}).answered(201)
		})},
	})
}

// A pod whose first version in view is ready was not there before.
func TestAddressesWithoutAPodThatIsNew(t *testing.T) {
	const one, two = "10.1.0.1", "10.1.0.2"
	begin := func(s *story) *history.Object {
		s.service("web", nil)
		known := s.reached(s.pod(nil, "web"), one, true, nil)
		s.wait(3 * time.Second)
		fresh := edited(*s.pod(nil, "web"), "spec", fields{"nodeName": "node-1"})
		s.commit(history.Modified, edited(fresh, "status", fields{
			"podIP": two, "podIPs": []any{fields{"ip": two}}, "phase": "Running", "conditions": []any{condition("Ready", "True", "", 1)},
		}))
		s.list(podResource)
		return known
	}
	judge(t, "addresses", []tale{
		{name: "listed just now", want: Pass, tell: func(s *story) {
			s.publish("web", subset([]any{at(begin(s), one)}, nil)).answered(201)
		}},
		{name: "listed long ago", want: Fail, says: "list nothing of pod", tell: func(s *story) {
			known := begin(s)
			s.wait(time.Minute)
			s.publish("web", subset([]any{at(known, one)}, nil)).answered(201)
		}},
	})
}

// endpointsOf is Endpoints as the controller labels them.
func endpointsOf(name string, subsets ...any) history.Object {
	return history.Object{
		Ref:    history.Ref{Namespace: namespace, Name: name},
		Labels: map[string]string{managedByLabel: managedBy},
		Body:   encoded(fields{"subsets": subsets}),
	}
}
