package check

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

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

// TestDifference: how addresses are put into subsets makes no difference; one
// that is missing, wrong or too many does.
func TestDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := listing{}
		for i := range rapid.IntRange(1, 1400).Draw(t, "pods") {
			number := int32(rapid.IntRange(1, 2).Draw(t, "port"))
			want[pair{target{ip: fmt.Sprint("10.0.0.", i), uid: "u"}, port{number: number}}] = rapid.Bool().Draw(t, "ready")
		}
		total, ready := want.size()
		got := listing{}
		for p, isReady := range want { // ready ones first, as many as fit
			if isReady && len(got) < addressesMax {
				got[p] = true
			}
		}
		for p, isReady := range want {
			if !isReady && len(got) < addressesMax {
				got[p] = false
			}
		}
		if d := difference(got, want); d != "" {
			t.Fatalf("%d addresses, %d ready: %s", total, ready, d)
		}
		for p := range got {
			for name, spoil := range map[string]func(listing){
				"missing":   func(l listing) { delete(l, p) },
				"misjudged": func(l listing) { l[p] = !l[p] },
				"extra":     func(l listing) { l[pair{target{ip: "10.9.9.9"}, port{}}] = true },
			} {
				spoilt := maps.Clone(got)
				spoil(spoilt)
				if difference(spoilt, want) == "" {
					t.Errorf("%s goes unnoticed among %d", name, total)
				}
			}
			break
		}
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

func TestQuietOfEndpoints(t *testing.T) {
	rewritten := func(capacity string) func(s *story) {
		return func(s *story) {
			s.service("web", fields{"selector": fields{"app": "nobody"}})
			s.annotate(s.endpoints("web"), capacityAnnotation, capacity)
			s.phase(history.PhaseSettle)
			s.phase(history.PhaseQuiet)
			s.wait(1500 * time.Millisecond)
			s.writeEndpoints("update", "web").answered(200)
			s.wait(time.Second)
		}
	}
	judge(t, "no-writes-when-settled", []tale{
		{name: "without a change (E10)", want: Fail, says: "sent update endpoints ns/web", tell: rewritten("")},
		{name: "those that were truncated (trap 32)", want: Pass, tell: rewritten("truncated")},
	})
}

// TestSettledKnowsServices: a run waits for Endpoints, also when they change
// after they were found in order, and for those whose Service has gone.
func TestSettledKnowsServices(t *testing.T) {
	s := newStory()
	settled, seen := NewSettled(), 0
	pendingNow := func() []string {
		for ; seen < len(s.records); seen++ {
			settled.Observe(s.records[seen])
		}
		return settled.Pending()
	}
	expect := func(when, want string) {
		t.Helper()
		got := pendingNow()
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	service := s.service("web", nil)
	expect("no Endpoints", "Service ns/web: no Endpoints")
	e := s.endpoints("web")
	expect("no pods", "")
	s.reached(s.pod(nil, "web"), "10.1.0.1", true, nil)
	expect("a pod has come", "Service ns/web: its Endpoints lack 10.1.0.1:8080 (pod Pod ns/web-1)")
	s.remove(service)
	expect("the Service has gone", "Endpoints ns/web: left behind by a Service that is gone")
	s.remove(e)
	expect("all is gone", "")
}
