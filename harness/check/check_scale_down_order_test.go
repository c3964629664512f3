package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// podFields contains the fields of a pod that decide its place in the deletion order of a
// scale-down.
type podFields struct {
	node     string // "" if the pod is not assigned to a node
	phase    string
	unready  bool          // the condition Ready is False
	readyFor time.Duration // how long the pod has been ready at the start of the history
	age      time.Duration // age of the pod at the start of the history
	restarts int
	cost     string // the annotation pod-deletion-cost
}

// ordinaryPod describes a running and ready pod on a node, without pod-deletion-cost and
// restarts.
var ordinaryPod = podFields{node: "node-0", phase: "Running", readyFor: time.Hour, age: time.Hour}

// podExcept returns the fields of ordinaryPod after the given change.
func podExcept(change func(*podFields)) podFields {
	l := ordinaryPod
	change(&l)
	return l
}

// apply writes the fields into a pod object.
func (l podFields) apply(o *history.Object) {
	began := time.Unix(1e9, 0)
	status := "True"
	if l.unready {
		status = "False"
	}
	o.Created = began.Add(-l.age)
	o.Annotations = map[string]string{objects.PodDeletionCostAnnotation: l.cost}
	o.Body = fmt.Appendf(nil, `{"spec":{"nodeName":%q},"status":{"phase":%q,"containerStatuses":[{"restartCount":%d}],`+
		`"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`,
		l.node, l.phase, l.restarts, status, began.Add(-l.readyFor).Format(time.RFC3339))
}

// podsWith commits one pod of an owner for each element of all. It then delivers the pods, and
// waits.
func (h *historyBuilder) podsWith(owner *history.Object, all ...podFields) []*history.Object {
	var pods []*history.Object
	for _, l := range all {
		pods = append(pods, h.setPodFields(h.pod(owner, owner.Name), l))
	}
	h.deliver(pods...)
	h.wait(3 * time.Second)
	return pods
}

// setPodFields commits a new version of a pod that has the given fields, and returns this
// version.
func (h *historyBuilder) setPodFields(pod *history.Object, l podFields) *history.Object {
	changed := *pod
	l.apply(&changed)
	return h.commit(history.Modified, changed)
}

// scaleDownOfDeployment builds a scale-down of a Deployment's ReplicaSet, and returns the ReplicaSet.
// The process deletes the older of two pods, of which the other became ready much later.
func (h *historyBuilder) scaleDownOfDeployment() *history.Object {
	h.deployment("web", 2, nil)
	rs := h.replicaSetOf("web", "v1", 2, 2)
	old := h.setPodFields(h.podOf(rs, "Running"), ordinaryPod)
	h.deliver(old, h.setPodFields(h.podOf(rs, "Running"), podExcept(func(l *podFields) { l.readyFor = 10 * time.Second })))
	h.wait(3 * time.Second)
	h.deliver(h.scale(rs.Name, 1))
	h.delete(old).answered(200)
	return rs
}

func TestScaleDownOrder(t *testing.T) {
	// deletesFirst returns a function that builds a scale-down from two pods to one. The process
	// deletes the first pod and leaves the second.
	deletesFirst := func(first, second podFields) func(*historyBuilder) {
		return func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.podsWith(rs, first, second)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.wait(3 * time.Second)
		}
	}
	unassigned := podExcept(func(l *podFields) { l.node, l.phase, l.unready = "", "Pending", true })
	pending := podExcept(func(l *podFields) { l.phase, l.unready = "Pending", true })
	unknown := podExcept(func(l *podFields) { l.phase = "Unknown" })
	unready := podExcept(func(l *podFields) { l.unready = true })
	cheap := podExcept(func(l *podFields) { l.cost = "-5" })
	expensive := podExcept(func(l *podFields) { l.cost = "5" })
	invalidCost := podExcept(func(l *podFields) { l.cost = "invalid" })
	fresh := podExcept(func(l *podFields) { l.readyFor = 10 * time.Second })
	recent := podExcept(func(l *podFields) { l.readyFor = 40 * time.Minute })
	restarted := podExcept(func(l *podFields) { l.restarts = 3 })
	young := podExcept(func(l *podFields) { l.age = time.Minute })
	for _, c := range []struct {
		lower, higher podFields
		reason        string
	}{
		{unassigned, pending, "is not assigned to a node"},
		{pending, unknown, "is Pending"},
		{pending, ordinaryPod, "is Pending"},
		{unknown, ordinaryPod, "is Unknown"},
		{unready, ordinaryPod, "is not ready"},
		{unready, cheap, "is not ready"},
		{cheap, ordinaryPod, "has pod-deletion-cost -5; the deleted pod has 0"},
		{ordinaryPod, expensive, "has pod-deletion-cost 0; the deleted pod has 5"},
		{invalidCost, expensive, "has pod-deletion-cost 0; the deleted pod has 5"},
		{fresh, ordinaryPod, "has been ready for 13s; the deleted pod has been ready for 1h0m3s"},
		{restarted, ordinaryPod, "has 3 container restarts; the deleted pod has 0"},
		{young, ordinaryPod, "has existed for 1m3s; the deleted pod has existed for 1h0m3s"},
	} {
		runTestCases(t, "scale-down-order", []testCase{
			{name: "leaves the pod that " + c.reason, want: Fail, evidence: c.reason, build: deletesFirst(c.higher, c.lower)},
			{name: "deletes the pod that " + c.reason, want: Pass, build: deletesFirst(c.lower, c.higher)},
		})
	}
	runTestCases(t, "scale-down-order", []testCase{
		{name: "equal pods", want: Pass, build: deletesFirst(ordinaryPod, ordinaryPod)},
		{name: "ages of one class (coarse-ranking)", want: Pass, build: deletesFirst(ordinaryPod, recent)},
		{name: "an order that depends on the sort", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.podsWith(rs, ordinaryPod, restarted, recent)
			h.deliver(h.scale("web", 2))
			h.delete(pods[0]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "pods of a Deployment: node ranks precede ages (coarse-ranking)", want: Pass, build: func(h *historyBuilder) {
			h.scaleDownOfDeployment()
			h.wait(3 * time.Second)
		}},
		{name: "pods of a Deployment that is deleted afterwards and orphans its ReplicaSet", want: Pass, build: func(h *historyBuilder) {
			rs := h.scaleDownOfDeployment()
			h.deliver(h.removeOwner(h.find(rs.Name)))
			h.wait(3 * time.Second)
		}},
		{name: "not ready since a moment", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.podsWith(rs, ordinaryPod, ordinaryPod)
			h.deliver(h.scale("web", 1), h.setPodFields(pods[1], unready))
			h.delete(pods[0]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "not ready for long", want: Fail, evidence: "is not ready", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.podsWith(rs, ordinaryPod, ordinaryPod)
			h.deliver(h.setPodFields(pods[1], unready))
			h.wait(5 * time.Second)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "another controller's pod is not ready", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.podsWith(rs, ordinaryPod, ordinaryPod)
			h.deliver(h.setPodFields(h.pod(foreign(), "web"), unready))
			h.wait(5 * time.Second)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "a batch in any order", want: Pass, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.podsWith(rs, ordinaryPod, unready, ordinaryPod)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
			h.deliver(h.terminate(pods[0]))
			h.delete(pods[1]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "the machine stalls in the middle of a batch", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.podsWith(rs, unready, pending, ordinaryPod, ordinaryPod, ordinaryPod)
			h.deliver(h.scale("web", 3))
			h.delete(pods[0]).answered(200)
			h.wait(3 * time.Second)
			h.delete(pods[1]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "a delete of a batch never reaches the proxy", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 5)
			pods := h.podsWith(rs, unready, pending, ordinaryPod, ordinaryPod, ordinaryPod)
			h.deliver(h.scale("web", 3))
			h.delete(pods[0]).answered(200)
			h.writeStatus(rs).answered(200)
			h.deliver(h.terminate(pods[0]))
			h.delete(pods[1]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "a second scale-down is checked separately", want: Fail, evidence: "is not ready", build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 4)
			pods := h.podsWith(rs, ordinaryPod, unready, ordinaryPod, ordinaryPod)
			h.deliver(h.scale("web", 3))
			h.delete(pods[0]).answered(200)
			h.deliver(h.terminate(pods[0]))
			h.writeStatus(rs).answered(200)
			h.deliver(h.scale("web", 2))
			h.delete(pods[1]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "killed before the second delete", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 3)
			pods := h.podsWith(rs, ordinaryPod, unready, ordinaryPod)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0])
			h.processEvent(history.ProcessStopped)
			h.restart(h.subject)
			h.delete(pods[1]).answered(200)
			h.wait(3 * time.Second)
		}},
		{name: "the history ends before the scale-down is certainly over", want: notFailed, build: func(h *historyBuilder) {
			rs := deliveredReplicaSet(h, 2)
			pods := h.podsWith(rs, ordinaryPod, unready)
			h.deliver(h.scale("web", 1))
			h.delete(pods[0]).answered(200)
		}},
	})
}

func TestScaleDownOrderOnNodes(t *testing.T) {
	// scaledDownTo builds a scale-down of a Deployment's ReplicaSet from 3 to the given size. The node
	// node-0 has two pods of the Deployment, and node-1 has one. The process deletes the pod with the
	// given index.
	scaledDownTo := func(size, index int, before func(*historyBuilder, *history.Object)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			h.deployment("web", 3, nil)
			rs := h.replicaSetOf("web", "v1", 3, 3)
			var pods []*history.Object
			for _, node := range []string{"node-0", "node-0", "node-1"} {
				pods = append(pods, h.setPodFields(h.podOf(rs, "Running"), podExcept(func(l *podFields) { l.node = node })))
			}
			h.deliver(pods...)
			h.wait(3 * time.Second)
			before(h, rs)
			h.deliver(h.scale(rs.Name, size))
			h.delete(pods[index]).answered(200)
			h.wait(3 * time.Second)
		}
	}
	scaledDown := func(index int, before func(*historyBuilder, *history.Object)) func(*historyBuilder) {
		return scaledDownTo(2, index, before)
	}
	nothing := func(*historyBuilder, *history.Object) {}
	runTestCases(t, "scale-down-order", []testCase{
		{name: "deletes a pod on the node with more pods", want: Pass, build: scaledDown(0, nothing)},
		{name: "deletes a pod on the node with fewer pods", want: Fail, evidence: "which is on a node with 2 pods of the Deployment; the node of the deleted pod has 1", build: scaledDown(2, nothing)},
		{name: "the owner adopts a pod on the node with fewer pods", want: Pass, build: scaledDownTo(3, 2, func(h *historyBuilder, rs *history.Object) {
			orphan := *h.setPodFields(h.podOf(rs, "Running"), podExcept(func(l *podFields) { l.node = "node-1" }))
			orphan.Owners = nil
			h.deliver(h.commit(history.Modified, orphan))
			h.wait(3 * time.Second)
		})},
		{name: "another pod of the Deployment has just appeared", want: Pass, build: scaledDown(2, func(h *historyBuilder, _ *history.Object) {
			h.deliver(h.setPodFields(h.podOf(h.replicaSetOf("web", "v2", 1, 1), "Running"), podExcept(func(l *podFields) { l.node = "node-1" })))
		})},
	})
}
