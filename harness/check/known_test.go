package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestKnownIssues(t *testing.T) {
	settling := func(build func(h *historyBuilder)) func(h *historyBuilder) {
		return func(h *historyBuilder) {
			build(h)
			h.phase(history.PhaseSettle)
			h.wait(time.Minute)
		}
	}
	// unready returns a function that builds Endpoints that list a ready pod as not ready, and
	// an update of these Endpoints. The function ends records what happens to this update.
	unready := func(ends func(h *historyBuilder, step *requestStep)) func(h *historyBuilder) {
		return settling(func(h *historyBuilder) {
			h.service("web", nil)
			pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			h.endpoints("web", subset(nil, []any{at(pod, "10.1.0.1")}))
			h.list(objects.EndpointsResource)
			ends(h, h.writeEndpoints("update", "web"))
		})
	}
	// listed returns a function that builds a Service with two pods, and Endpoints that list
	// them. The parameter ready says whether the first pod is ready. The function becomes then
	// changes the pods.
	listed := func(ready bool, becomes func(h *historyBuilder, a, b *history.Object)) func(h *historyBuilder) {
		return settling(func(h *historyBuilder) {
			h.service("web", nil)
			a := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", ready, nil)
			b := h.podWithAddress(h.pod(nil, "web"), "10.1.0.2", true, nil)
			if ready {
				h.endpoints("web", subset([]any{at(a, "10.1.0.1"), at(b, "10.1.0.2")}, nil))
			} else {
				h.endpoints("web", subset([]any{at(b, "10.1.0.2")}, []any{at(a, "10.1.0.1")}))
			}
			h.wait(3 * time.Second)
			becomes(h, a, b)
		})
	}
	for _, c := range []struct {
		name  string
		build func(h *historyBuilder)
		want  *KnownIssue // the known issue that must explain the failure; nil if none may explain it
		of    string      // the ID of the check that fails
	}{
		{"the only active ReplicaSet has the new size and a stale annotation", settling(func(h *historyBuilder) { buildStuckScaling(h, 4, 4, 5) }), stuckScaling, "rollout-complete"},
		{"the only active ReplicaSet has the new size and a current annotation", settling(func(h *historyBuilder) { buildStuckScaling(h, 4, 4, 4) }), nil, "rollout-complete"},
		{"the only active ReplicaSet is larger and has a stale annotation", settling(func(h *historyBuilder) { buildStuckScaling(h, 4, 5, 5) }), nil, "rollout-complete"},
		{"two active ReplicaSets have stale annotations, strategy Recreate", settling(func(h *historyBuilder) {
			buildRecreateScaling(h)
			h.settledStatus(8)
		}), recreateScaling, "rollout-complete"},
		{"two active ReplicaSets have stale annotations, strategy Recreate, paused", settling(func(h *historyBuilder) {
			buildRecreateScaling(h)
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			h.settledStatus(8)
		}), recreateScaling, "rollout-complete"},
		{"a rollback creates the ReplicaSet of the current template beside an old pod, strategy Recreate", func(h *historyBuilder) {
			h.deployment("web", 1, fields{"type": "Recreate"})
			h.podOf(h.replicaSetOfSize("web", "v1", 0, 0, 1), "Running")
			h.wait(3 * time.Second)
			h.rollTo("web", "v2")
			h.annotate(h.find("web"), objects.RollbackAnnotation, "0")
			h.deliver(h.find("web"))
			h.createReplicaSet("web", "v2", 1).applyAndAnswer()
		}, rollbackOverlap, "recreate"},
		{"two active ReplicaSets have stale annotations, strategy RollingUpdate", settling(func(h *historyBuilder) {
			h.deployment("web", 8, rollingUpdate(1, 0))
			h.replicaSetOfSize("web", "v1", 5, 5, 5)
			h.replicaSetOfSize("web", "v2", 1, 1, 5)
			h.rollTo("web", "v2")
			h.settledStatus(8)
		}), nil, "rollout-complete"},
		{"the last scale-down failed", settling(func(h *historyBuilder) {
			buildStuckScaling(h, 5, 5, 5)
			h.resize(h.find("web-v1"), 4).answered(500)
		}), swallowedError, "rollout-complete"},
		{"the last scale-down failed, before a restart of the process", settling(func(h *historyBuilder) {
			buildStuckScaling(h, 5, 5, 5)
			h.resize(h.find("web-v1"), 4).answered(500)
			h.restart("subject-0")
		}), nil, "rollout-complete"},
		{"the last scale-down failed, and another process started", settling(func(h *historyBuilder) {
			buildStuckScaling(h, 5, 5, 5)
			h.resize(h.find("web-v1"), 4).answered(500)
			h.restart("subject-1")
		}), swallowedError, "rollout-complete"},
		{"another write came after it", settling(func(h *historyBuilder) {
			buildStuckScaling(h, 5, 5, 5)
			h.resize(h.find("web-v1"), 4).answered(500)
			h.renumber(h.find("web-v2"), "2").answered(200)
		}), nil, "rollout-complete"},
		{"the response to the last write was lost", unready(func(_ *historyBuilder, step *requestStep) { step.lost() }), lostEndpoints, "endpoints-exact"},
		{"the response to the last write was lost, and another process started", unready(func(h *historyBuilder, step *requestStep) {
			step.lost()
			h.restart("subject-1")
		}), lostEndpoints, "endpoints-exact"},
		{"the response to the last write was lost, before a restart of the process", unready(func(h *historyBuilder, step *requestStep) {
			step.lost()
			h.restart("subject-0")
		}), nil, "endpoints-exact"},
		{"the last write was refused", unready(func(_ *historyBuilder, step *requestStep) { step.answered(500) }), nil, "endpoints-exact"},
		{"another write came after the one that was lost", unready(func(h *historyBuilder, step *requestStep) {
			step.lost()
			h.writeEndpoints("update", "web").answered(200)
		}), nil, "endpoints-exact"},
		{"a pod ended, and was delivered as ready", listed(true, func(h *historyBuilder, a, _ *history.Object) { h.deliver(h.endPod(a, true)) }), unnoticedEnd, "endpoints-exact"},
		{"a pod ended that had been as it was for long", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.wait(time.Hour)
			h.deliver(h.endPod(a, true))
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended that was not ready", listed(false, func(h *historyBuilder, a, _ *history.Object) { h.deliver(h.endPod(a, false)) }), unnoticedEnd, "endpoints-exact"},
		{"both ended, and were delivered as ready", listed(true, func(h *historyBuilder, a, b *history.Object) {
			h.deliver(h.endPod(a, true))
			h.wait(3 * time.Second)
			h.deliver(h.endPod(b, true))
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and was delivered as ready no more", listed(true, func(h *historyBuilder, a, _ *history.Object) { h.deliver(h.endPod(a, false)) }), nil, "endpoints-exact"},
		{"a pod ended, and was delivered as ready no more later", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.wait(3 * time.Second)
			h.deliver(h.endPod(a, false))
		}), nil, "endpoints-exact"},
		{"a pod ended without a delivery", listed(true, func(h *historyBuilder, a, _ *history.Object) { h.endPod(a, true) }), nil, "endpoints-exact"},
		{"a pod ended, and was found so in a list", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.endPod(a, true)
			h.list(objects.PodResource)
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and a list came that says the same", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.wait(3 * time.Second)
			h.list(objects.PodResource)
			h.list(objects.EndpointsResource)
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and a list came that shows it to be ready no more", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.wait(3 * time.Second)
			h.endPod(a, false)
			h.list(objects.PodResource)
		}), nil, "endpoints-exact"},
		{"a pod ended, and a list of Services came after it", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.wait(3 * time.Second)
			h.list(objects.ServiceResource)
		}), nil, "endpoints-exact"},
		{"a pod ended, and another process started", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.restart("subject-1")
		}), unnoticedEnd, "endpoints-exact"},
		{"a pod ended, and another event for the Service followed", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.deliver(h.commit(history.Modified, h.listed(objects.ServiceResource)[0]))
		}), nil, "endpoints-exact"},
		{"a pod ended, and another one came after it", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.podWithAddress(h.pod(nil, "web"), "10.1.0.3", true, nil)
		}), nil, "endpoints-exact"},
		{"a pod ended, and another one is listed wrongly", listed(true, func(h *historyBuilder, a, b *history.Object) {
			h.remove(b)
			h.wait(3 * time.Second)
			h.deliver(h.endPod(a, true))
		}), nil, "endpoints-exact"},
		{"a pod ended, and Endpoints were written after it", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.wait(3 * time.Second)
			h.writeEndpoints("update", "web").answered(200)
		}), nil, "endpoints-exact"},
		{"a pod ended, before a restart of the process", listed(true, func(h *historyBuilder, a, _ *history.Object) {
			h.deliver(h.endPod(a, true))
			h.restart("subject-0")
		}), nil, "endpoints-exact"},
		{"a status goes to a new object with the same name that was read live", func(h *historyBuilder) { buildNamesakeStatus(h, true, 1) }, namesakeStatus, "status"},
		{"a status goes to a new object with the same name, long after that one was delivered", func(h *historyBuilder) { buildLateNamesakeStatus(h, true) }, namesakeStatus, "status"},
		{"a status goes to a new object with the same name, without a conflict", func(h *historyBuilder) { buildLateNamesakeStatus(h, false) }, nil, "status"},
		{"a status goes to a new object with the same name that was delivered, with wrong counts", func(h *historyBuilder) { buildNamesakeStatus(h, false, 2) }, nil, "status"},
		{"the Deployment's own ReplicaSet has the name, and the cache still has the former one", func(h *historyBuilder) {
			buildRecreatedDeployment(h, true)
			h.createForRecreated().applyAndAnswer()
			h.createForRecreated().answered(409)
			h.raiseCollisionCount(1)
		}, falseCollision, "revisions"},
		{"the Deployment's own ReplicaSet has the name, and the cache loses the former one during the create", func(h *historyBuilder) {
			former := buildRecreatedDeployment(h, true)
			h.createForRecreated().applyAndAnswer()
			create := h.createForRecreated()
			h.deliverGone(former)
			create.answered(409)
			h.raiseCollisionCount(1)
		}, falseCollision, "revisions"},
		{"the Deployment's own ReplicaSet has the name, and the cache lost the former one before the create", func(h *historyBuilder) {
			h.deliverGone(buildRecreatedDeployment(h, true))
			h.createForRecreated().applyAndAnswer()
			h.createForRecreated().answered(409)
			h.raiseCollisionCount(1)
		}, nil, "revisions"},
		{"the Deployment's own ReplicaSet has the name, and collisionCount rises by two", func(h *historyBuilder) {
			buildRecreatedDeployment(h, true)
			h.createForRecreated().applyAndAnswer()
			h.createForRecreated().answered(409)
			h.raiseCollisionCount(2)
		}, nil, "revisions"},
		{"a false collision has led to a second ReplicaSet", settling(func(h *historyBuilder) { buildSecondReplicaSet(h, true, 10) }), falseCollision, "rollout-complete"},
		{"a false collision has led to a second ReplicaSet, before a restart of the process", settling(func(h *historyBuilder) {
			buildSecondReplicaSet(h, true, 10)
			h.restart("subject-0")
		}), falseCollision, "rollout-complete"},
		{"a false collision has led to a second ReplicaSet, and the first has a wrong size", settling(func(h *historyBuilder) { buildSecondReplicaSet(h, true, 9) }), nil, "rollout-complete"},
		{"a false collision has led to a second ReplicaSet, and there is a third one", settling(func(h *historyBuilder) {
			buildSecondReplicaSet(h, true, 10)
			third := *h.find("web-v1-second")
			third.Name, third.UID = "web-v1-third", "web-v1-third-uid"
			h.commit(history.Added, third)
		}), nil, "rollout-complete"},
		{"a second ReplicaSet has another cause", settling(func(h *historyBuilder) { buildSecondReplicaSet(h, false, 10) }), nil, "rollout-complete"},
		{"the cache still has the former ReplicaSet, and no create was rejected", func(h *historyBuilder) {
			buildRecreatedDeployment(h, true)
			h.createForRecreated().applyAndAnswer()
			h.raiseCollisionCount(1)
		}, nil, "revisions"},
		{"a create for a ReplicaSet has failed 16 times", settling(func(h *historyBuilder) { buildFailedWrites(h, replicaSets, 16) }), longBackOff, "converged"},
		{"a create for a ReplicationController has failed 16 times", settling(func(h *historyBuilder) { buildFailedWrites(h, controllers, 16) }), longBackOff, "converged"},
		{"a create for a ReplicaSet of a Deployment has failed 16 times", settling(func(h *historyBuilder) { buildFailedRollout(h, 16) }), longBackOff, "rollout-complete"},
		{"a create for a ReplicaSet of a Deployment has failed 16 times, but its replicas exist", settling(func(h *historyBuilder) {
			buildFailedRollout(h, 16)
			h.status("web-v1", 2)
			h.running(h.find("web-v1"), 2)
		}), nil, "rollout-complete"},
		{"a create for a ReplicaSet of a Deployment has failed 14 times", settling(func(h *historyBuilder) { buildFailedRollout(h, 14) }), nil, "rollout-complete"},
		{"a create for a ReplicaSet has failed 14 times, and the status was written twice", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 13)
			owner := h.find("web")
			for range 2 {
				h.updateStatus(owner, fields{"replicas": 0}).answered(200)
			}
			h.create(owner).answered(500)
		}), longBackOff, "converged"},
		{"a create for a ReplicaSet has failed 14 times", settling(func(h *historyBuilder) { buildFailedWrites(h, replicaSets, 14) }), nil, "converged"},
		{"a create has failed 16 times, and an event for the owner followed", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 16)
			h.deliver(h.scale("web", 3))
		}), nil, "converged"},
		{"a create has failed 16 times, and once more after an event for the owner", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 16)
			h.deliver(h.scale("web", 3))
			h.create(h.find("web")).answered(500)
		}), longBackOff, "converged"},
		{"a create has failed 16 times, and an event arrived during the last", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 15)
			last := h.create(h.find("web"))
			h.deliver(h.scale("web", 3))
			last.answered(500)
		}), nil, "converged"},
		{"a create has failed 16 times, and not the next", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 16)
			h.deliver(h.createAll(h.find("web"), 1)...)
		}), nil, "converged"},
		{"16 creates have failed at once", settling(func(h *historyBuilder) {
			for _, step := range h.creates(deliveredReplicaSet(h, 16), 16) {
				step.answered(500)
			}
		}), nil, "converged"},
		{"a create has failed 16 times, and a list of pods brings no change", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 16)
			h.wait(3 * time.Second)
			h.list(objects.PodResource)
		}), longBackOff, "converged"},
		{"an adoption has failed 16 times, and its pod changes in other ways", settling(func(h *historyBuilder) {
			h.podWithAddress(buildFailedAdoption(h, 16), "10.1.0.1", true, nil)
		}), longBackOff, "converged"},
		{"an adoption has failed 16 times, and its pod is relabeled", settling(func(h *historyBuilder) {
			h.deliver(h.relabel(buildFailedAdoption(h, 16), "other"))
		}), nil, "converged"},
		{"a create has failed 16 times, and another process started", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 16)
			h.restart("subject-1")
		}), longBackOff, "converged"},
		{"a create has failed 16 times, before a restart of the process", settling(func(h *historyBuilder) {
			buildFailedWrites(h, replicaSets, 16)
			h.restart("subject-0")
		}), nil, "converged"},
		{"a scale-down fails every 5 ms", func(h *historyBuilder) { buildRepeatedResizes(h, 3) }, swallowedError, "back-off"},
		{"a scale-down fails every 5 ms, because it has happened", buildStaleResizes, swallowedError, "back-off"},
		{"a scale-up fails every 5 ms", func(h *historyBuilder) { buildRepeatedResizes(h, 5) }, nil, "back-off"},
		{"a deleted pod had lost its owner", settling(func(h *historyBuilder) { buildDeleteAfterOwnerChange(h, true, 0) }), deleteAfterOwnerChange, "converged"},
		{"a deleted pod kept its owner", settling(func(h *historyBuilder) { buildDeleteAfterOwnerChange(h, false, 0) }), nil, "converged"},
		{"a deleted pod had lost its owner, and a later sync deleted another pod", settling(func(h *historyBuilder) { buildDeleteAfterOwnerChange(h, true, 5*time.Second) }), nil, "converged"},
		{"a deleted pod had lost its owner, before a restart of the process", settling(func(h *historyBuilder) {
			buildDeleteAfterOwnerChange(h, true, 0)
			h.restart("subject-0")
		}), nil, "converged"},
		{"a ReplicationController's pods are created again before their delivery", settling(func(h *historyBuilder) { buildLatePods(h, controllers, 5*time.Minute) }), latePods, "not-above-desired"},
		{"a ReplicationController's pods are created again before 5 minutes have passed", settling(func(h *historyBuilder) { buildLatePods(h, controllers, 4*time.Minute) }), nil, "not-above-desired"},
		{"a ReplicaSet's pods are created again before their delivery", settling(func(h *historyBuilder) { buildLatePods(h, replicaSets, 5*time.Minute) }), nil, "not-above-desired"},
		{"a ReplicationController's pods are created again after their delivery", settling(func(h *historyBuilder) { buildRepeatedCreates(h, 3*time.Second) }), nil, "not-above-desired"},
		{"a ReplicationController's pods are created again at the moment of their delivery", settling(func(h *historyBuilder) { buildRepeatedCreates(h, 0) }), latePods, "not-above-desired"},
		{"Endpoints are deleted at the start, of a Service that was not delivered", func(h *historyBuilder) { buildEarlyLeftovers(h, 5*time.Second) }, earlyLeftovers, "orphan-endpoints"},
		{"the watch of Endpoints lags for 170 s after an event for the Service", settling(func(h *historyBuilder) { buildStaleEndpoints(h, 170*time.Second, 1) }), staleEndpointsCache, "endpoints-exact"},
		{"the watch of Endpoints lags for 160 s after an event for the Service", settling(func(h *historyBuilder) { buildStaleEndpoints(h, 160*time.Second, 1) }), nil, "endpoints-exact"},
		{"the watch of Endpoints lags for 90 s after an event for the Service", settling(func(h *historyBuilder) { buildStaleEndpoints(h, 90*time.Second, 1) }), longBackOff, "endpoints-exact"},
		{"the watch of Endpoints lags for 1 s while a pod terminates", settling(func(h *historyBuilder) {
			pod := h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			updatedEndpoints(h).answered(200)
			h.podWithAddress(h.pod(nil, "web"), "10.1.0.2", true, nil)
			for at := range 15 {
				pod.Deleting = time.Unix(int64(at), 0)
				pod = h.commit(history.Modified, *pod)
				h.deliver(pod)
			}
			h.wait(time.Second)
			h.list(objects.EndpointsResource)
		}), staleEndpointsCache, "endpoints-exact"},
		{"the watch of Endpoints lags for 5 s after 16 events for the Service", settling(func(h *historyBuilder) { buildStaleEndpoints(h, 5*time.Second, 16) }), staleEndpointsCache, "endpoints-exact"},
		{"the watch of Endpoints lags for 100 ms after 2 events for the Service", settling(func(h *historyBuilder) { buildStaleEndpoints(h, 100*time.Millisecond, 2) }), nil, "endpoints-exact"},
		{"the watch of Endpoints lags for 170 s after an event during the update", settling(func(h *historyBuilder) {
			update := updatedEndpoints(h)
			h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			update.answered(200)
			h.wait(170 * time.Second)
			h.deliver(update.made)
		}), staleEndpointsCache, "endpoints-exact"},
		{"the watch of Endpoints lags for 170 s, and an event for the Service follows", settling(func(h *historyBuilder) {
			buildStaleEndpoints(h, 170*time.Second, 1)
			h.deliver(h.commit(history.Modified, h.listed(objects.ServiceResource)[0]))
		}), nil, "endpoints-exact"},
		{"the watch of Endpoints lags for 170 s, and the process writes the Endpoints again", settling(func(h *historyBuilder) {
			buildStaleEndpoints(h, 170*time.Second, 1)
			h.writeEndpoints("update", "web").answered(500)
		}), nil, "endpoints-exact"},
		{"the watch of Endpoints lags for 170 s, and the process restarts", settling(func(h *historyBuilder) {
			buildStaleEndpoints(h, 170*time.Second, 1)
			h.restart("subject-0")
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times", settling(func(h *historyBuilder) { buildRefusedCreates(h, 16) }), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 15 times", settling(func(h *historyBuilder) { buildRefusedCreates(h, 15) }), nil, "endpoints-exact"},
		{"a write of Endpoints has just failed for the 15th time", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 14)
			h.writeEndpoints("create", "web").answered(500)
		}), longBackOff, "endpoints-exact"},
		{"a write of Endpoints has just failed for the 15th time, and an event for the Service followed", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 14)
			h.writeEndpoints("create", "web").answered(500)
			h.deliver(h.commit(history.Modified, h.listed(objects.ServiceResource)[0]))
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and another process started", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.restart("subject-1")
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, before a restart of the process", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.restart("subject-0")
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and another process holds the lease", settling(func(h *historyBuilder) {
			h.holdLease()
			buildRefusedCreates(h, 16)
			h.restart("subject-1")
			h.holdLease()
			h.wait(16 * time.Second)
			h.holdLease()
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and its process is paused, which does not renew the lease", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.processEvent(history.ProcessPaused)
			h.restart("subject-1")
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and an event for the Service followed", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.deliver(h.commit(history.Modified, h.listed(objects.ServiceResource)[0]))
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and once more after an event for the Service", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.deliver(h.commit(history.Modified, h.listed(objects.ServiceResource)[0]))
			h.writeEndpoints("create", "web").answered(500)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and 16 times more after an event for the Service", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.deliver(h.commit(history.Modified, h.listed(objects.ServiceResource)[0]))
			retry(h, 16, 5*time.Millisecond, 2, func() { h.writeEndpoints("create", "web").answered(500) })
		}), droppedKey, "endpoints-exact"},
		{"a create of Endpoints has failed 8 times, and an update 8 times more", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 8)
			h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
			h.endpoints("web")
			retry(h, 8, time.Second, 2, func() { h.writeEndpoints("update", "web").answered(500) })
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 15 times, another not, and the first once more", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 15)
			made := h.endpoints("web")
			h.writeEndpoints("update", "web").answered(200)
			h.remove(made)
			h.writeEndpoints("create", "web").answered(500)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and a list of pods brings no change", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.list(objects.PodResource)
			h.list(objects.EndpointsResource)
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and Services are listed again", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.list(objects.ServiceResource)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and another pod was created since", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and the machine stalls before the lease is renewed", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.holdLease()
			h.phase(history.PhaseSettle)
			h.stall(50 * time.Second)
			h.wait(10 * time.Second)
			h.phase(history.PhaseEnd)
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, and another write succeeded since", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 16)
			h.wait(time.Minute)
			h.endpoints("web")
			h.writeEndpoints("update", "web").answered(200)
			h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
		}), nil, "endpoints-exact"},
		{"a write of Endpoints has failed 16 times, each after 10 retries by the client", settling(func(h *historyBuilder) {
			h.service("web", nil)
			h.list(objects.EndpointsResource)
			retry(h, 16, 5*time.Millisecond, 2, func() {
				for range 11 {
					h.writeEndpoints("create", "web").deferred(429)
				}
			})
		}), droppedKey, "endpoints-exact"},
		{"a write of Endpoints has failed 15 times, and once more with client retries to follow", settling(func(h *historyBuilder) {
			buildRefusedCreates(h, 15)
			for range 10 {
				h.writeEndpoints("create", "web").deferred(429)
			}
		}), nil, "endpoints-exact"},
		{"a create of a ReplicaSet has just failed for the 15th time", settling(func(h *historyBuilder) {
			h.deployment("web", 5, rollingUpdate(1, 0))
			h.list(objects.ReplicaSetResource)
			retry(h, 14, 5*time.Millisecond, 2, func() { h.createReplicaSet("web", "v1", 5).answered(500) })
			h.createReplicaSet("web", "v1", 5).answered(500)
		}), longBackOff, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times, and an event for the Deployment followed", settling(func(h *historyBuilder) {
			d := h.deployment("web", 5, rollingUpdate(1, 0))
			h.list(objects.ReplicaSetResource)
			retry(h, 16, 5*time.Millisecond, 2, func() { h.createReplicaSet("web", "v1", 5).answered(500) })
			h.deliver(h.commit(history.Modified, *d))
		}), nil, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times, and the last sync wrote the status", settling(func(h *historyBuilder) {
			h.deployment("web", 5, rollingUpdate(1, 0))
			h.list(objects.ReplicaSetResource)
			retry(h, 15, 5*time.Millisecond, 2, func() { h.createReplicaSet("web", "v1", 5).answered(500) })
			h.createReplicaSet("web", "v1", 5).answered(500)
			h.wait(5 * time.Second)
			h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Subresource: "status", Namespace: namespace, Name: "web", Object: h.find("web")}).answered(200)
		}), droppedKey, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times, and the last sync continued", settling(func(h *historyBuilder) {
			h.deployment("web", 5, rollingUpdate(1, 0))
			h.replicaSetOfSize("web", "v1", 5, 5, 5)
			retry(h, 15, 5*time.Millisecond, 2, func() { h.createReplicaSet("web", "v2", 1).answered(500) })
			h.createReplicaSet("web", "v2", 1).answered(500)
			h.renumber(h.find("web-v1"), "2").answered(200)
		}), droppedKey, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times, and another ReplicaSet was written later", settling(func(h *historyBuilder) {
			h.deployment("web", 5, rollingUpdate(1, 0))
			h.replicaSetOfSize("web", "v1", 5, 5, 5)
			retry(h, 16, 5*time.Millisecond, 2, func() { h.createReplicaSet("web", "v2", 1).answered(500) })
			h.renumber(h.find("web-v1"), "2").answered(200)
		}), nil, "rollout-complete"},
		{"a create of a ReplicaSet has failed 16 times", settling(func(h *historyBuilder) {
			h.deployment("web", 5, rollingUpdate(1, 0))
			h.list(objects.ReplicaSetResource)
			retry(h, 16, 5*time.Millisecond, 2, func() { h.createReplicaSet("web", "v1", 5).answered(500) })
		}), droppedKey, "rollout-complete"},
		{"a ReplicaSet grows to its share while all are scaled down in proportion", func(h *historyBuilder) { buildProportionalGrowth(h, 4, 6) }, proportionalGrowth, "max-surge"},
		{"a ReplicaSet grows above its share while all are scaled down in proportion", func(h *historyBuilder) { buildProportionalGrowth(h, 4, 7) }, nil, "max-surge"},
		{"a ReplicaSet grows while no scaling is pending", func(h *historyBuilder) { buildProportionalGrowth(h, 5, 6) }, nil, "max-surge"},
		{"an old ReplicaSet with a pod beyond spec.replicas is scaled down by one", func(h *historyBuilder) { buildStaleAvailability(h, true, 7) }, staleAvailability, "max-unavailable"},
		{"an old ReplicaSet with a pod beyond spec.replicas is scaled down, and no other has an unavailable pod", func(h *historyBuilder) { buildStaleAvailability(h, false, 7) }, nil, "max-unavailable"},
		{"an old ReplicaSet with a pod beyond spec.replicas is scaled down by two", func(h *historyBuilder) { buildStaleAvailability(h, true, 6) }, nil, "max-unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistoryBuilder()
			c.build(h)
			h.end()
			for _, upstream := range []bool{true, false} {
				asked := testSettings
				asked.Upstream = upstream
				results, _, err := Run(asked, h.all())
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(results, func(r Result) bool { return r.Check == c.of })
				got, want, slug := results[i], Fail, ""
				if c.want != nil {
					slug = c.want.Slug
				}
				if c.want != nil && upstream {
					want = KnownUpstream
				}
				if got.Verdict != want || len(got.Evidence) == 0 || got.Evidence[0].KnownIssue != slug {
					t.Errorf("upstream %v: %s with %+v, want %s with the known issue %q", upstream, got.Verdict, got.Evidence, want, slug)
				}
				text := "; kube-controller-manager has the same bug (known upstream issue " + slug + "), but other controllers must not have this bug"
				if upstream {
					text = "; known upstream issue " + slug + ": "
				}
				if c.want != nil && !strings.Contains(got.Reason, text) {
					t.Errorf("upstream %v: reason %q; want it to contain %q", upstream, got.Reason, text)
				}
			}
		})
	}
}

func TestKnownIssuesTable(t *testing.T) {
	for _, issue := range KnownIssues {
		if _, ok := Find(issue.Check); !ok {
			t.Errorf("%s: there is no check %q", issue.Slug, issue.Check)
		}
	}
}
