package check

import (
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// buildStuckScaling builds a rollout from v1 to v2 that does not progress. Only the old
// ReplicaSet v1 has pods.
//
// The parameter replicas is the Deployment's spec.replicas. The parameters size and desired are
// the spec.replicas and the desired-replicas annotation of v1.
func buildStuckScaling(h *historyBuilder, replicas, size, desired int) {
	h.deployment("web", replicas, rollingUpdate(0, 1))
	h.replicaSetOfSize("web", "v1", size, size, desired)
	h.replicaSetOfSize("web", "v2", 0, 0, replicas)
	h.rollTo("web", "v2")
	h.settledStatus(replicas)
}

// buildRecreateScaling builds a rollout from v1 to v2 of a Deployment that was scaled to 8. Both of its
// ReplicaSets have the desired-replicas annotation of the former size.
func buildRecreateScaling(h *historyBuilder) {
	h.deployment("web", 8, fields{"type": "Recreate"})
	h.replicaSetOfSize("web", "v1", 5, 5, 5)
	h.replicaSetOfSize("web", "v2", 1, 1, 5)
	h.rollTo("web", "v2")
}

// buildStaleAvailability builds a rollout from v1 to v2 that scales the ReplicaSet v1 down to a size. Its
// status has 9 available pods, but its spec.replicas is 8. At least 8 pods must stay available.
//
// If unavailable is true, there is a third ReplicaSet, whose only pod is not available.
func buildStaleAvailability(h *historyBuilder, unavailable bool, size int) {
	h.deployment("web", 10, rollingUpdate(0, "25%"))
	if unavailable {
		h.replicaSetOf("web", "v0", 1, 0)
	}
	h.replicaSetOf("web", "v1", 8, 9)
	h.replicaSetOf("web", "v2", 2, 0)
	h.rollTo("web", "v2")
	h.resize(h.find("web-v1"), size).applyAndAnswer()
}

// buildProportionalGrowth builds three ReplicaSets, which have 14 replicas together. At most 7 are
// allowed. The process scales the first of them from 4 to the given size. The parameter desired is
// the desired-replicas annotation of this ReplicaSet.
func buildProportionalGrowth(h *historyBuilder, desired, size int) {
	h.deployment("web", 5, rollingUpdate(2, "25%"))
	first := newReplicaSetOf("web", "v1", 4, desired)
	first.Annotations[objects.MaxReplicasAnnotation] = "5"
	h.deliver(h.commit(history.Added, first))
	h.replicaSetOfSize("web", "v2", 5, 0, 5)
	h.replicaSetOfSize("web", "v3", 5, 0, 5)
	h.rollTo("web", "v3")
	h.resize(h.find("web-v1"), size).applyAndAnswer()
}

// buildNamesakeStatus builds a status write for a new ReplicaSet that has the name of a deleted
// ReplicaSet.
//
// The parameter pods is the number of pods in the status. If live is true, the process has read
// the new ReplicaSet from the API server. If live is false, a watch event has delivered it.
func buildNamesakeStatus(h *historyBuilder, live bool, pods int) {
	old := deliveredReplicaSet(h, 1)
	h.running(old, 1)
	h.wait(3 * time.Second)
	h.commit(history.Deleted, *h.find("web"))
	anew := *old
	anew.UID = "web-anew-uid"
	h.commit(history.Added, anew)
	if live {
		h.readLive(h.find("web"))
	} else {
		h.deliver(h.find("web"))
		h.wait(3 * time.Second)
	}
	h.updateStatus(h.find("web"), fields{
		"replicas": pods, "fullyLabeledReplicas": pods, "readyReplicas": pods, "availableReplicas": pods, "observedGeneration": 1,
	})
}

// buildLateNamesakeStatus is like [buildNamesakeStatus], but the new ReplicaSet has been in the cache
// for seconds. The sync began before the new ReplicaSet reached the cache.
//
// If conflict is true, the process first tries to write the status to the deleted ReplicaSet.
func buildLateNamesakeStatus(h *historyBuilder, conflict bool) {
	old := deliveredReplicaSet(h, 0)
	h.deliver(h.scale("web", 0))
	status := fields{"replicas": 0, "observedGeneration": 2}
	anew := *old
	anew.UID = "web-anew-uid"
	h.deliverGone(h.commit(history.Deleted, *h.find("web")))
	h.deliver(h.commit(history.Added, anew))
	h.wait(3 * time.Second)
	if conflict {
		h.updateStatus(old, status).answered(409)
	}
	h.readLive(h.find("web"))
	h.updateStatus(h.find("web"), status).answered(200)
}

// buildRecreatedDeployment builds a Deployment that is deleted and created again under the same
// name. The cache still contains the ReplicaSet web-v1 of the deleted Deployment, which the
// function returns. If removed is true, the API server has deleted this ReplicaSet.
func buildRecreatedDeployment(h *historyBuilder, removed bool) (former *history.Object) {
	d := h.deployment("web", 10, rollingUpdate(5, 0))
	o := newReplicaSetOf("web", "v1", 10, 10)
	o.UID = "web-v1-former-uid"
	former = h.commit(history.Added, o)
	h.deliver(former)
	if removed {
		h.commit(history.Deleted, *former)
	}
	h.remove(d)
	anew := *d
	anew.UID = "web-anew-uid"
	h.deliver(h.commit(history.Added, anew))
	h.wait(3 * time.Second)
	return former
}

// createForRecreated records that the process sends a create of the ReplicaSet web-v1 for the
// Deployment of buildRecreatedDeployment. It records no response.
func (h *historyBuilder) createForRecreated() *requestStep {
	o := newReplicaSetOf("web", "v1", 10, 10)
	o.Ref = history.Ref{Namespace: namespace, Name: o.Name}
	o.Owners[0].UID = "web-anew-uid"
	h.recordSize(&o)
	return h.request(history.Request{Verb: "create", Resource: objects.ReplicaSetResource, Namespace: namespace, Object: &o})
}

// raiseCollisionCount records that the process writes status.collisionCount of the Deployment web,
// and that the write succeeds.
func (h *historyBuilder) raiseCollisionCount(to int) {
	h.writeDeploymentStatus(h.find("web"), fields{"collisionCount": to}).answered(200)
}

// buildSecondReplicaSet builds the situation after a false collision. Two ReplicaSets have the
// template of the Deployment of buildRecreatedDeployment: web-v1 with all pods, and web-v1-second.
//
// The parameter former says whether the cache contains the former ReplicaSet web-v1, so that the
// collision is a false one. The parameter size is the spec.replicas of web-v1.
func buildSecondReplicaSet(h *historyBuilder, former bool, size int) {
	gone := buildRecreatedDeployment(h, true)
	if !former {
		h.deliverGone(gone)
	}
	own := *h.createForRecreated().applyAndAnswer()
	h.createForRecreated().answered(409)
	h.raiseCollisionCount(1)
	h.deliver(h.revise("web", "status", fields{"collisionCount": 1}))
	second := newReplicaSetOf("web", "v1", 0, 10)
	second.Name, second.UID, second.Owners = "web-v1-second", "web-v1-second-uid", own.Owners
	h.commit(history.Added, second)
	own.Annotations = map[string]string{objects.DesiredReplicasAnnotation: "10", objects.RevisionAnnotation: "2"}
	h.commit(history.Modified, own)
	h.scale("web-v1", size)
	h.status("web-v1", 10)
	h.status("web-v1-second", 0)
	h.settledStatus(10)
}

// buildEarlyLeftovers builds a process start after which the process deletes Endpoints. The
// cache contains the Endpoints, but not their Service. The parameter there is the time for which
// the Service has existed.
func buildEarlyLeftovers(h *historyBuilder, there time.Duration) {
	h.list(objects.ServiceResource)
	h.commit(history.Added, history.Object{
		Ref:  history.Ref{Resource: objects.ServiceResource, Namespace: namespace, Name: "web", UID: "web-service-uid"},
		Body: encoded(fields{"spec": fields{"clusterIP": "10.0.0.1", "selector": fields{"app": "web"}}}),
	})
	h.endpoints("web")
	h.wait(there)
	h.writeEndpoints("delete", "web").answered(200)
	h.phase(history.PhaseSettle)
	h.wait(time.Minute)
}

// buildRefusedCreates builds the given number of failed creates of Endpoints. The pauses between
// them are those of upstream's back-off.
func buildRefusedCreates(h *historyBuilder, tries int) {
	h.service("web", nil)
	h.list(objects.EndpointsResource)
	retry(h, tries, 5*time.Millisecond, 2, func() { h.writeEndpoints("create", "web").answered(500) })
}

// buildStaleEndpoints builds an update of Endpoints whose watch event arrives only after the given
// time. After the response, the given number of events each add a pod, which the Endpoints lack.
func buildStaleEndpoints(h *historyBuilder, lag time.Duration, pods int) {
	update := updatedEndpoints(h)
	update.answered(200)
	for range pods {
		h.podWithAddress(h.pod(nil, "web"), "10.1.0.1", true, nil)
	}
	h.wait(lag)
	h.deliver(update.made)
}

// updatedEndpoints builds the Endpoints of a Service, and an update of them. The update is committed,
// but has no response.
func updatedEndpoints(h *historyBuilder) *requestStep {
	h.service("web", nil)
	made := *h.endpoints("web")
	made.Body = endpointsOf("web", fields{}).Body
	update := h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: &made})
	update.made = h.commit(history.Modified, made)
	return update
}

// buildFailedWrites builds the given number of failed creates of a pod for an owner of the given
// resource. The pauses between them are those of upstream's back-off.
func buildFailedWrites(h *historyBuilder, resource string, tries int) {
	owner := h.owner(resource, "web", "web", 2)
	h.deliver(owner)
	retry(h, tries-1, firstRetry, 2, func() { h.create(owner).answered(500) })
	h.create(owner).answered(500)
}

// buildDeleteAfterOwnerChange builds a ReplicaSet of one pod too many. Two pods are missing in the end.
// With disowned true, a user has removed the owner of the pod that the process deletes. If the argument
// again is not 0, the process deletes another pod after this time.
func buildDeleteAfterOwnerChange(h *historyBuilder, disowned bool, again time.Duration) {
	owner := deliveredReplicaSet(h, 2)
	pods := h.running(owner, 3)
	h.wait(3 * time.Second)
	deleted := pods[0]
	if disowned {
		deleted = h.removeOwner(deleted)
	}
	h.delete(deleted).answered(200)
	h.deliver(deleted)
	h.deliverGone(deleted)
	if again > 0 {
		h.wait(again)
		h.delete(pods[1]).answered(200)
		h.deliverGone(pods[1])
	}
	h.deliver(h.scale("web", 4))
}

// buildRepeatedResizes builds an old ReplicaSet of 4 replicas. Every 5 ms, an update of its spec.replicas to
// the given number fails.
func buildRepeatedResizes(h *historyBuilder, to int) {
	h.deployment("web", 10, rollingUpdate(2, 2))
	old := h.replicaSetOf("web", "v1", 4, 4)
	h.replicaSetOf("web", "v2", 6, 6)
	h.rollTo("web", "v2")
	retry(h, 100, 5*time.Millisecond, 1, func() { h.resize(old, to).answered(409) })
}

// buildStaleResizes builds scale-downs that fail every 5 ms. The process has already scaled down, and its
// watch of ReplicaSets lags.
func buildStaleResizes(h *historyBuilder) {
	h.deployment("web", 10, rollingUpdate(2, 2))
	set := h.replicaSetOf("web", "v1", 4, 4)
	h.replicaSetOf("web", "v2", 6, 6)
	h.rollTo("web", "v2")
	old := *set
	h.resize(set, 3).applyAndAnswer()
	retry(h, 100, 5*time.Millisecond, 1, func() { h.resize(&old, 3).answered(409) })
}

// buildFailedRollout builds a Deployment whose only ReplicaSet has no pods. The given number of
// creates of a pod for it fail. The pauses between them are those of upstream's back-off.
func buildFailedRollout(h *historyBuilder, tries int) {
	h.deployment("web", 2, rollingUpdate(0, "25%"))
	set := h.replicaSetOfSize("web", "v1", 2, 0, 2)
	h.rollTo("web", "v1")
	retry(h, tries-1, firstRetry, 2, func() { h.create(set).answered(500) })
	h.create(set).answered(500)
}

// buildFailedAdoption builds the given number of failed adoptions of a pod without a controller,
// and returns this pod.
func buildFailedAdoption(h *historyBuilder, tries int) (orphan *history.Object) {
	owner := deliveredReplicaSet(h, 1)
	orphan = h.pod(nil, "web")
	h.deliver(orphan)
	retry(h, tries-1, firstRetry, 2, func() { h.adopt(orphan, owner).answered(500) })
	h.adopt(orphan, owner).answered(500)
	return orphan
}

// buildRepeatedCreates builds a ReplicationController with two replicas. The process creates two
// pods, gets their events after 5 minutes, and creates two more after the given further time.
func buildRepeatedCreates(h *historyBuilder, after time.Duration) {
	owner := h.owner(controllers, "web", "web", 2)
	h.deliver(owner)
	pods := h.createAll(owner, 2)
	h.wait(5 * time.Minute)
	h.deliver(pods...)
	h.wait(after)
	h.createAll(owner, 2)
}

// buildLatePods builds an owner of the given resource with two replicas. The process creates two
// pods, and creates two more after the given time. No watch event delivers any of the pods.
func buildLatePods(h *historyBuilder, resource string, after time.Duration) {
	owner := h.owner(resource, "web", "web", 2)
	h.deliver(owner)
	h.createAll(owner, 2)
	h.wait(after)
	h.createAll(owner, 2)
}

// endPod commits a version of a pod with the phase Failed. The parameter ready says whether the
// pod stays ready.
func (h *historyBuilder) endPod(pod *history.Object, ready bool) *history.Object {
	o := *h.find(pod.Name)
	o.Body = []byte(strings.Replace(string(h.podBodyWithAddress(&o, ready)), `"Running"`, `"Failed"`, 1))
	return h.commit(history.Modified, o)
}

// podBodyWithAddress returns the JSON of a pod with the given readiness. The rest of the JSON is
// that of the given pod.
func (h *historyBuilder) podBodyWithAddress(pod *history.Object, ready bool) []byte {
	readiness := map[bool]string{true: `"status":"True"`, false: `"status":"False"`}
	return []byte(strings.Replace(string(pod.Body), readiness[!ready], readiness[ready], 1))
}
