package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// stuck tells of a rollout from v1 to v2 that has not got beyond its beginning
// within a minute, the only pods being those of a ReplicaSet of that size, which was
// last scaled for so many replicas.
func stuck(s *story, replicas, size, desired int) {
	s.deployment("web", replicas, rollingUpdate(0, 1))
	s.setFor("web", "v1", size, size, desired)
	s.setFor("web", "v2", 0, 0, replicas)
	s.rollTo("web", "v2")
	s.settledStatus(replicas)
}

// written tells of a status that is written onto an owner of the same name as the one that
// it is of, which the process knows from a live read or was told of, and says that it
// has so many pods.
func written(s *story, live bool, pods int) {
	old := told(s, 1)
	s.running(old, 1)
	s.wait(3 * time.Second)
	s.commit(history.Deleted, *s.find("web"))
	anew := *old
	anew.UID = "web-anew-uid"
	s.commit(history.Added, anew)
	if live {
		s.readLive(s.find("web"))
	} else {
		s.deliver(s.find("web"))
		s.wait(3 * time.Second)
	}
	s.says(s.find("web"), fields{
		"replicas": pods, "fullyLabeledReplicas": pods, "readyReplicas": pods, "availableReplicas": pods, "observedGeneration": 1,
	})
}

// swept tells of a process that begins, with Endpoints in view and not their Service,
// which has been there for some time, and deletes them.
func swept(s *story, there time.Duration) {
	s.list(serviceResource)
	s.commit(history.Added, history.Object{
		Ref:  history.Ref{Resource: serviceResource, Namespace: namespace, Name: "web", UID: "web-service-uid"},
		Body: encoded(fields{"spec": fields{"clusterIP": "10.0.0.1", "selector": fields{"app": "web"}}}),
	})
	s.endpoints("web")
	s.wait(there)
	s.writeEndpoints("delete", "web").answered(200)
	s.phase(history.PhaseSettle)
	s.wait(time.Minute)
}

// refused tells of Endpoints that cannot be made, so often, and never are.
func refused(s *story, tries int) {
	s.service("web", nil)
	s.list(endpointsResource)
	retry(s, tries, 5*time.Millisecond, 2, func() { s.writeEndpoints("create", "web").answered(500) })
}

// inVain tells of an owner for which no pod can be made, and so many tries.
func inVain(s *story, resource string, tries int) {
	owner := s.owner(resource, "web", "web", 2)
	s.deliver(owner)
	retry(s, tries-1, firstRetry, 2, func() { s.create(owner).answered(500) })
	s.create(owner).answered(500)
}

// notAdopted tells of an orphan that an owner may not adopt, and so many tries.
func notAdopted(s *story, tries int) (orphan *history.Object) {
	owner := told(s, 1)
	orphan = s.pod(nil, "web")
	s.deliver(orphan)
	retry(s, tries-1, firstRetry, 2, func() { s.adopt(orphan, owner).answered(500) })
	s.adopt(orphan, owner).answered(500)
	return orphan
}

// madeAgain tells of an owner whose two pods are made, and made again after a time.
func madeAgain(s *story, resource string, after time.Duration) {
	owner := s.owner(resource, "web", "web", 2)
	s.deliver(owner)
	s.createAll(owner, 2)
	s.wait(after)
	s.createAll(owner, 2)
}

// ended says of a pod that has an address that it has failed.
func (s *story) ended(pod *history.Object, ready bool) *history.Object {
	o := *s.find(pod.Name)
	o.Body = []byte(strings.Replace(string(s.bodyReached(&o, ready)), `"Running"`, `"Failed"`, 1))
	return s.commit(history.Modified, o)
}

// bodyReached is the body of a pod that has an address, with another readiness.
func (s *story) bodyReached(pod *history.Object, ready bool) []byte {
	readiness := map[bool]string{true: `"status":"True"`, false: `"status":"False"`}
	return []byte(strings.Replace(string(pod.Body), readiness[!ready], readiness[ready], 1))
}

func TestKnownWeaknesses(t *testing.T) {
	settling := func(tell func(s *story)) func(s *story) {
		return func(s *story) {
			tell(s)
			s.phase(history.PhaseSettle)
			s.wait(time.Minute)
		}
	}
	// unready tells of Endpoints that say for good that their pod is not ready, after
	// a write that ended in some way.
	unready := func(ends func(s *story, a *ask)) func(s *story) {
		return settling(func(s *story) {
			s.service("web", nil)
			pod := s.reached(s.pod(nil, "web"), "10.1.0.1", true, nil)
			s.endpoints("web", subset(nil, []any{at(pod, "10.1.0.1")}))
			s.list(endpointsResource)
			ends(s, s.writeEndpoints("update", "web"))
		})
	}
	// listed tells of a Service whose Endpoints list two pods, as they say, and of what
	// becomes of the pods.
	listed := func(ready bool, becomes func(s *story, a, b *history.Object)) func(s *story) {
		return settling(func(s *story) {
			s.service("web", nil)
			a := s.reached(s.pod(nil, "web"), "10.1.0.1", ready, nil)
			b := s.reached(s.pod(nil, "web"), "10.1.0.2", true, nil)
			if ready {
				s.endpoints("web", subset([]any{at(a, "10.1.0.1"), at(b, "10.1.0.2")}, nil))
			} else {
				s.endpoints("web", subset([]any{at(b, "10.1.0.2")}, []any{at(a, "10.1.0.1")}))
			}
			s.wait(3 * time.Second)
			becomes(s, a, b)
		})
	}
	for _, c := range []struct {
		name string
		tell func(s *story)
		want *KnownIssue // nil: it is not known for that
		of   string      // the check
	}{
		{"its only pods are as many as it asks for, by another note", settling(func(s *story) { stuck(s, 4, 4, 5) }), stuckScaling, "rollout-complete"},
		{"its only pods are as many, by the right note", settling(func(s *story) { stuck(s, 4, 4, 4) }), nil, "rollout-complete"},
		{"its only pods are more, by another note", settling(func(s *story) { stuck(s, 4, 5, 5) }), nil, "rollout-complete"},
		{"two have pods, by another note, and it is Recreate by now", settling(func(s *story) {
			s.deployment("web", 8, fields{"type": "Recreate"})
			s.setFor("web", "v1", 5, 5, 5)
			s.setFor("web", "v2", 1, 1, 5)
			s.rollTo("web", "v2")
			s.settledStatus(8)
		}), recreateScaling, "rollout-complete"},
		{"two have pods, by another note, in a rolling update", settling(func(s *story) {
			s.deployment("web", 8, rollingUpdate(1, 0))
			s.setFor("web", "v1", 5, 5, 5)
			s.setFor("web", "v2", 1, 1, 5)
			s.rollTo("web", "v2")
			s.settledStatus(8)
		}), nil, "rollout-complete"},
		{"the last scale-down failed", settling(func(s *story) {
			stuck(s, 5, 5, 5)
			s.resize(s.find("web-v1"), 4).answered(500)
		}), swallowedError, "rollout-complete"},
		{"the last scale-down failed, of the life before", settling(func(s *story) {
			stuck(s, 5, 5, 5)
			s.resize(s.find("web-v1"), 4).answered(500)
			s.restart("subject-0")
		}), nil, "rollout-complete"},
		{"the last scale-down failed, and another process started", settling(func(s *story) {
			stuck(s, 5, 5, 5)
			s.resize(s.find("web-v1"), 4).answered(500)
			s.restart("subject-1")
		}), swallowedError, "rollout-complete"},
		{"another write came after it", settling(func(s *story) {
			stuck(s, 5, 5, 5)
			s.resize(s.find("web-v1"), 4).answered(500)
			s.renumber(s.find("web-v2"), "2").answered(200)
		}), nil, "rollout-complete"},
		{"the answer to the last write was lost", unready(func(_ *story, a *ask) { a.lost() }), lostEndpoints, "endpoints-exact"},
		{"the answer to the last write was lost, and another process started", unready(func(s *story, a *ask) {
			a.lost()
			s.restart("subject-1")
		}), lostEndpoints, "endpoints-exact"},
		{"the answer to the last write was lost, in the life before", unready(func(s *story, a *ask) {
			a.lost()
			s.restart("subject-0")
		}), nil, "endpoints-exact"},
		{"the last write was refused", unready(func(_ *story, a *ask) { a.answered(500) }), nil, "endpoints-exact"},
		{"another write came after the one that was lost", unready(func(s *story, a *ask) {
			a.lost()
			s.writeEndpoints("update", "web").answered(200)
		}), nil, "endpoints-exact"},
		{"a pod ended, and was told to be ready", listed(true, func(s *story, a, _ *history.Object) { s.deliver(s.ended(a, true)) }), unnoticedEnd, "endpoints-exact"},
		{"a pod ended that had been as it was for long", listed(true, func(s *story, a, _ *history.Object) {
			s.wait(time.Hour)
			s.deliver(s.ended(a, true))
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended that was not ready", listed(false, func(s *story, a, _ *history.Object) { s.deliver(s.ended(a, false)) }), unnoticedEnd, "endpoints-exact"},
		{"both ended, and were told to be ready", listed(true, func(s *story, a, b *history.Object) {
			s.deliver(s.ended(a, true))
			s.wait(3 * time.Second)
			s.deliver(s.ended(b, true))
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and was told to be ready no more", listed(true, func(s *story, a, _ *history.Object) { s.deliver(s.ended(a, false)) }), nil, "endpoints-exact"},
		{"a pod ended, and was told to be ready no more later", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.wait(3 * time.Second)
			s.deliver(s.ended(a, false))
		}), nil, "endpoints-exact"},
		{"a pod ended, and nobody told", listed(true, func(s *story, a, _ *history.Object) { s.ended(a, true) }), nil, "endpoints-exact"},
		{"a pod ended, and was found so in a list", listed(true, func(s *story, a, _ *history.Object) {
			s.ended(a, true)
			s.list(podResource)
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and a list came that says the same", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.wait(3 * time.Second)
			s.list(podResource)
			s.list(endpointsResource)
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and a list came that shows it to be ready no more", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.wait(3 * time.Second)
			s.ended(a, false)
			s.list(podResource)
		}), nil, "endpoints-exact"},
		{"a pod ended, and a list of Services came after it", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.wait(3 * time.Second)
			s.list(serviceResource)
		}), nil, "endpoints-exact"},
		{"a pod ended, and another process started", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.restart("subject-1")
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and there was other news of the Service after it", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.deliver(s.commit(history.Modified, s.listed(serviceResource)[0]))
		}), nil, "endpoints-exact"},
		{"a pod ended, and another one came after it", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.reached(s.pod(nil, "web"), "10.1.0.3", true, nil)
		}), nil, "endpoints-exact"},
		{"a pod ended, and another one is listed wrongly", listed(true, func(s *story, a, b *history.Object) {
			s.remove(b)
			s.wait(3 * time.Second)
			s.deliver(s.ended(a, true))
		}), nil, "endpoints-exact"},
		{"a pod ended, and Endpoints were written after it", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.wait(3 * time.Second)
			s.writeEndpoints("update", "web").answered(200)
		}), nil, "endpoints-exact"},
		{"a pod ended, in the life before", listed(true, func(s *story, a, _ *history.Object) {
			s.deliver(s.ended(a, true))
			s.restart("subject-0")
		}), nil, "endpoints-exact"},
		{"a status goes to a namesake that was read live", func(s *story) { written(s, true, 1) }, namesakeStatus, "status"},
		{"a status goes to a namesake that it was told of, and is not its own", func(s *story) { written(s, false, 2) }, nil, "status"},
		{"a create for a ReplicaSet has failed 16 times", settling(func(s *story) { inVain(s, replicaSets, 16) }), longBackOff, "converged"},
		{"a create for a ReplicationController has failed 16 times", settling(func(s *story) { inVain(s, controllers, 16) }), longBackOff, "converged"},
		{"a create for a ReplicaSet has failed 14 times", settling(func(s *story) { inVain(s, replicaSets, 14) }), nil, "converged"},
		{"a create has failed 16 times, and there was news of the owner since", settling(func(s *story) {
			inVain(s, replicaSets, 16)
			s.deliver(s.scale("web", 3))
		}), nil, "converged"},
		{"a create has failed 16 times, and once more after news of the owner", settling(func(s *story) {
			inVain(s, replicaSets, 16)
			s.deliver(s.scale("web", 3))
			s.create(s.find("web")).answered(500)
		}), longBackOff, "converged"},
		{"a create has failed 16 times, and there was news during the last", settling(func(s *story) {
			inVain(s, replicaSets, 15)
			last := s.create(s.find("web"))
			s.deliver(s.scale("web", 3))
			last.answered(500)
		}), nil, "converged"},
		{"a create has failed 16 times, and not the next", settling(func(s *story) {
			inVain(s, replicaSets, 16)
			s.deliver(s.createAll(s.find("web"), 1)...)
		}), nil, "converged"},
		{"16 creates have failed at once", settling(func(s *story) {
			for _, a := range s.creates(told(s, 16), 16) {
				a.answered(500)
			}
		}), nil, "converged"},
		{"a create has failed 16 times, and a list of pods says what was known", settling(func(s *story) {
			inVain(s, replicaSets, 16)
			s.wait(3 * time.Second)
			s.list(podResource)
		}), longBackOff, "converged"},
		{"an adoption has failed 16 times, and its pod goes on", settling(func(s *story) {
			s.reached(notAdopted(s, 16), "10.1.0.1", true, nil)
		}), longBackOff, "converged"},
		{"an adoption has failed 16 times, and its pod is relabelled", settling(func(s *story) {
			s.deliver(s.relabel(notAdopted(s, 16), "other"))
		}), nil, "converged"},
		{"a create has failed 16 times, and another process started", settling(func(s *story) {
			inVain(s, replicaSets, 16)
			s.restart("subject-1")
		}), longBackOff, "converged"},
		{"a create has failed 16 times, in the life before", settling(func(s *story) {
			inVain(s, replicaSets, 16)
			s.restart("subject-0")
		}), nil, "converged"},
		{"a ReplicationController's pods are made again that it was not shown", settling(func(s *story) { madeAgain(s, controllers, 5*time.Minute) }), latePods, "not-above-desired"},
		{"a ReplicationController's pods are made again too early", settling(func(s *story) { madeAgain(s, controllers, 4*time.Minute) }), nil, "not-above-desired"},
		{"a ReplicaSet's pods are made again that it was not shown", settling(func(s *story) { madeAgain(s, replicaSets, 5*time.Minute) }), nil, "not-above-desired"},
		{"a ReplicationController's pods are made again that it was shown in the end", settling(func(s *story) {
			owner := s.owner(controllers, "web", "web", 2)
			s.deliver(owner)
			pods := s.createAll(owner, 2)
			s.wait(5 * time.Minute)
			s.deliver(pods...)
			s.createAll(owner, 2)
		}), nil, "not-above-desired"},
		{"Endpoints are deleted at the start, of a Service that it was not shown", func(s *story) { swept(s, 5*time.Second) }, earlyLeftovers, "orphan-endpoints"},
		{"a write of Endpoints has failed 16 times", settling(func(s *story) { refused(s, 16) }), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 15 times", settling(func(s *story) { refused(s, 15) }), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and another process started", settling(func(s *story) {
			refused(s, 16)
			s.restart("subject-1")
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, in the life before", settling(func(s *story) {
			refused(s, 16)
			s.restart("subject-0")
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and another process leads by now", settling(func(s *story) {
			s.leads()
			refused(s, 16)
			s.restart("subject-1")
			s.leads()
			s.wait(16 * time.Second)
			s.leads()
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and its process is paused, which asks for no lease", settling(func(s *story) {
			refused(s, 16)
			s.life(history.ProcessPaused)
			s.restart("subject-1")
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and there was news of the Service since", settling(func(s *story) {
			refused(s, 16)
			s.deliver(s.commit(history.Modified, s.listed(serviceResource)[0]))
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and once more after news of the Service", settling(func(s *story) {
			refused(s, 16)
			s.deliver(s.commit(history.Modified, s.listed(serviceResource)[0]))
			s.writeEndpoints("create", "web").answered(500)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and 16 times more after news of the Service", settling(func(s *story) {
			refused(s, 16)
			s.deliver(s.commit(history.Modified, s.listed(serviceResource)[0]))
			retry(s, 16, 5*time.Millisecond, 2, func() { s.writeEndpoints("create", "web").answered(500) })
		}), droppedKey, "endpoints-exact"},
		{"a create of Endpoints has failed 8 times, and an update 8 times more", settling(func(s *story) {
			refused(s, 8)
			s.reached(s.pod(nil, "web"), "10.1.0.1", true, nil)
			s.endpoints("web")
			retry(s, 8, time.Second, 2, func() { s.writeEndpoints("update", "web").answered(500) })
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 15 times, another not, and the first once more", settling(func(s *story) {
			refused(s, 15)
			made := s.endpoints("web")
			s.writeEndpoints("update", "web").answered(200)
			s.remove(made)
			s.writeEndpoints("create", "web").answered(500)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and a list of pods says what was known", settling(func(s *story) {
			refused(s, 16)
			s.list(podResource)
			s.list(endpointsResource)
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and Services are listed anew", settling(func(s *story) {
			refused(s, 16)
			s.list(serviceResource)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and there is another pod since", settling(func(s *story) {
			refused(s, 16)
			s.reached(s.pod(nil, "web"), "10.1.0.1", true, nil)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and the machine stands still before the lease is renewed", settling(func(s *story) {
			refused(s, 16)
			s.leads()
			s.phase(history.PhaseSettle)
			s.stall(50 * time.Second)
			s.wait(10 * time.Second)
			s.phase(history.PhaseEnd)
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and another was made since", settling(func(s *story) {
			refused(s, 16)
			s.wait(time.Minute)
			s.endpoints("web")
			s.writeEndpoints("update", "web").answered(200)
			s.reached(s.pod(nil, "web"), "10.1.0.1", true, nil)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, after 10 repeats of the client's each", settling(func(s *story) {
			s.service("web", nil)
			s.list(endpointsResource)
			retry(s, 16, 5*time.Millisecond, 2, func() {
				for range 11 {
					s.writeEndpoints("create", "web").deferred(429)
				}
			})
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 15 times, and once more with repeats of the client's to come", settling(func(s *story) {
			refused(s, 15)
			for range 10 {
				s.writeEndpoints("create", "web").deferred(429)
			}
		}), nil, "endpoints-exact"},
		{"a create of a ReplicaSet has failed 16 times, and there was news of the Deployment since", settling(func(s *story) {
			d := s.deployment("web", 5, rollingUpdate(1, 0))
			s.list(setResource)
			retry(s, 16, 5*time.Millisecond, 2, func() { s.make("web", "v1", 5).answered(500) })
			s.deliver(s.commit(history.Modified, *d))
		}), nil, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times, and what the last try said of it was written", settling(func(s *story) {
			s.deployment("web", 5, rollingUpdate(1, 0))
			s.list(setResource)
			retry(s, 15, 5*time.Millisecond, 2, func() { s.make("web", "v1", 5).answered(500) })
			s.make("web", "v1", 5).answered(500)
			s.wait(5 * time.Second)
			s.request(history.Request{Verb: "update", Resource: deploymentResource, Subresource: "status", Namespace: namespace, Name: "web", Object: s.find("web")}).answered(200)
		}), droppedKey, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times, and the last try went on", settling(func(s *story) {
			s.deployment("web", 5, rollingUpdate(1, 0))
			s.setFor("web", "v1", 5, 5, 5)
			retry(s, 15, 5*time.Millisecond, 2, func() { s.make("web", "v2", 1).answered(500) })
			s.make("web", "v2", 1).answered(500)
			s.renumber(s.find("web-v1"), "2").answered(200)
		}), droppedKey, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times, and another ReplicaSet was written later", settling(func(s *story) {
			s.deployment("web", 5, rollingUpdate(1, 0))
			s.setFor("web", "v1", 5, 5, 5)
			retry(s, 16, 5*time.Millisecond, 2, func() { s.make("web", "v2", 1).answered(500) })
			s.renumber(s.find("web-v1"), "2").answered(200)
		}), nil, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times", settling(func(s *story) {
			s.deployment("web", 5, rollingUpdate(1, 0))
			s.list(setResource)
			retry(s, 16, 5*time.Millisecond, 2, func() { s.make("web", "v1", 5).answered(500) })
		}), droppedKey, "rollout-complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory()
			c.tell(s)
			s.end()
			for _, upstream := range []bool{true, false} {
				asked := setting
				asked.Upstream = upstream
				results, _, err := Run(asked, s.all())
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(results, func(r Result) bool { return r.Check == c.of })
				got, want, trap := results[i], Fail, 0
				if c.want != nil {
					trap = c.want.Trap
				}
				if c.want != nil && upstream {
					want = KnownUpstream
				}
				if got.Verdict != want || len(got.Evidence) == 0 || got.Evidence[0].KnownIssue != trap {
					t.Errorf("upstream %v: %s with %+v, want %s with the weakness %d", upstream, got.Verdict, got.Evidence, want, trap)
				}
				if c.want != nil && !strings.Contains(got.Reason, c.want.Description) {
					t.Errorf("the reason does not tell the weakness: %s", got.Reason)
				}
			}
		})
	}
}

func TestWeaknesses(t *testing.T) {
	for _, w := range KnownIssues {
		if _, ok := Find(w.Check); !ok {
			t.Errorf("%s: there is no check %q", w.Name, w.Check)
		}
	}
}
