package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestOwnership(t *testing.T) {
	runTestCases(t, "ownership", []testCase{
		{name: "deletes its own pod", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 2)
			h.delete(pods[0])
		}},
		{name: "deletes another controller's pod", want: Fail, evidence: "subject-0 deleted pod ns/web-1; in its cache the pod has controller ConfigMap foreign", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			pod := h.pod(foreign(), "web")
			h.deliver(pod)
			h.delete(pod)
		}},
		{name: "deletes an orphan", want: Fail, evidence: "the pod has no controller", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 0)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.delete(pod)
		}},
		{name: "deletes a pod that was orphaned within the lag (delete-without-precondition)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 2)
			h.deliver(h.removeOwner(pods[0]))
			h.delete(pods[0])
		}},
		{name: "deletes a pod that was orphaned long ago", want: Fail, evidence: "the pod has no controller", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 2)
			h.deliver(h.removeOwner(pods[0]))
			h.wait(3 * time.Second)
			h.delete(pods[0])
		}},
		{name: "deletes a pod that it has just adopted", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 0)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.readLive(rs)
			h.adopt(pod, rs).answered(200)
			h.wait(2 * time.Second)
			h.delete(pod)
		}},
		{name: "adopts an orphan after a live read", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.readLive(rs)
			h.adopt(pod, rs)
		}},
		{name: "a Deployment adopts a ReplicaSet after a live read", want: Pass, build: func(h *historyBuilder) {
			d, set := orphanedReplicaSet(h)
			h.readLive(d)
			h.adopt(set, d)
		}},
		{name: "a Deployment adopts a ReplicaSet without a live read", want: Fail, evidence: "subject-0 adopted ReplicaSet ns/web-v1 for Deployment ns/web without a read of the Deployment", build: func(h *historyBuilder) {
			d, set := orphanedReplicaSet(h)
			h.adopt(set, d)
		}},
		{name: "a Deployment adopts a ReplicaSet after it was recreated", want: Fail, evidence: "another Deployment of this name", build: func(h *historyBuilder) {
			d, set := orphanedReplicaSet(h)
			h.read(d, namesake(d))
			h.adopt(set, d)
		}},
		{name: "a Deployment adopts a ReplicaSet after it was deleted", want: Fail, evidence: "the API server had no such Deployment", build: func(h *historyBuilder) {
			d, set := orphanedReplicaSet(h)
			h.read(d, nil)
			h.adopt(set, d)
		}},
		{name: "a Deployment adopts a ReplicaSet while it is terminating", want: Fail, evidence: "although the Deployment was terminating", build: func(h *historyBuilder) {
			d, set := orphanedReplicaSet(h)
			h.read(d, h.terminate(d))
			h.adopt(set, d)
		}},
		{name: "adopts an orphan without blockOwnerDeletion", want: Fail, evidence: "adopted pod ns/web-1 with an owner reference without blockOwnerDeletion=true", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.readLive(rs)
			h.patch(pod, fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"kind":"ReplicaSet","uid":%q,"controller":true}]}}`, pod.UID, rs.UID))
		}},
		{name: "adopts an orphan with a patch without its UID", want: Fail, evidence: "changed the owner references of pod ns/web-1 with a patch without the pod's UID", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.readLive(rs)
			h.patch(pod, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"kind":"ReplicaSet","uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`, rs.UID))
		}},
		{name: "adopts an orphan without a live read (mutant R10)", want: Fail, evidence: "without a read of the owner from the API server", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.adopt(pod, rs)
		}},
		{name: "adopts its former pod again without a live read (mutant R10)", want: Fail, evidence: "without a read of the owner from the API server", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.running(rs, 2)
			h.deliver(h.removeOwner(pods[0]))
			h.adopt(pods[0], rs)
		}},
		{name: "adopts its former pod again after a live read", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.running(rs, 2)
			h.deliver(h.removeOwner(pods[0]))
			h.readLive(rs)
			h.adopt(pods[0], rs)
		}},
		{name: "adopts a pod that it controls by now", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.running(rs, 2)
			h.adopt(pods[0], rs)
		}},
		{name: "adopts after a live read that preceded the orphan", want: Fail, evidence: "without a read of the owner from the API server", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.readLive(rs)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.adopt(pod, rs)
		}},
		{name: "adopts although the live read showed the owner terminating", want: Fail, evidence: "without a read of the owner from the API server", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.terminate(rs)
			h.readLive(rs)
			h.adopt(pod, rs)
		}},
		{name: "adopts again after an adoption without an answer", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.readLive(rs)
			h.adopt(pod, rs).lost()
			h.readLive(rs)
			h.adopt(pod, rs).answered(200)
		}},
		{name: "adopts an orphan that matches two owners (overlapping-selectors)", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			h.deliver(h.owner(replicaSets, "other", "web", 1))
			pod := h.pod(nil, "web")
			h.deliver(pod)
			h.readLive(rs)
			h.adopt(pod, rs)
		}},
		{name: "adopts a pod that does not match", want: Fail, evidence: "adopted", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "other")
			h.deliver(pod)
			h.readLive(rs)
			h.adopt(pod, rs)
		}},
		{name: "adopts a failed pod (inactive-pods)", want: Fail, evidence: "adopted", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			failed := h.failPod(h.pod(nil, "web"))
			h.deliver(failed)
			h.readLive(rs)
			h.adopt(failed, rs)
		}},
		{name: "adopts another controller's pod", want: Fail, evidence: "controller ConfigMap foreign", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(foreign(), "web")
			h.deliver(pod)
			h.readLive(rs)
			h.adopt(pod, rs)
		}},
		{name: "releases a pod that no longer matches", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 1)
			h.deliver(h.relabel(pods[0], "other"))
			h.release(pods[0], rs)
		}},
		{name: "releases a pod that still matches", want: Fail, evidence: "released pod ns/web-1 from ReplicaSet ns/web", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 1)
			h.release(pods[0], rs)
		}},
		{name: "releases a pod while its owner is terminating", want: Fail, evidence: "released pod ns/web-1 from ReplicaSet ns/web, which is terminating", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 1)
			h.deliver(h.terminate(rs))
			h.wait(3 * time.Second)
			h.deliver(h.relabel(pods[0], "other"))
			h.release(pods[0], rs)
		}},
		{name: "releases a pod whose owner has just become terminating", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 1)
			h.deliver(h.relabel(pods[0], "other"))
			h.deliver(h.terminate(rs))
			h.release(pods[0], rs)
		}},
		{name: "releases another controller's pod", want: Fail, evidence: "wrote to", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pod := h.pod(foreign(), "web")
			h.deliver(pod)
			h.release(pod, rs)
		}},
		{name: "labels a pod that no owner controls", want: Fail, evidence: "wrote to", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			pod := h.pod(nil, "other")
			h.deliver(pod)
			h.patch(pod, `{"metadata":{"labels":{"a":"b"}}}`)
		}},
		{name: "a pod with two controllers", want: Fail, evidence: "has 2 owner references with controller=true", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 1)
			pods := h.running(rs, 1)
			twice := *pods[0]
			twice.Owners = append(controlledBy(rs), controlledBy(foreign())...)
			h.commit(history.Modified, twice)
		}},
	})
}

// orphanedReplicaSet delivers a Deployment and a ReplicaSet that it can adopt.
func orphanedReplicaSet(h *historyBuilder) (d, set *history.Object) {
	d = h.deployment("web", 2, rollingUpdate(1, 1))
	set = h.removeOwner(h.replicaSetOf("web", "v1", 2, 2))
	h.deliver(set)
	return d, set
}
