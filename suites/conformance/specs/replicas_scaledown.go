package specs

import (
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// scaleDownCase describes the states of two pods of a ReplicaSet or ReplicationController. After
// a scale-down by one, the controller must delete the pod with the state in the field deleted.
type scaleDownCase struct {
	text          string
	kept, deleted podState
}

// podState is a function that writes a certain state to the status or metadata of an
// unschedulable pod. Pass the same time now for both pods. If their ready times differ by only a
// second, upstream compares the UIDs of the pods instead of further criteria, such as restarts.
type podState func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time)

// longReady is a podState: the pod has been ready for one hour.
func longReady(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
	withReadiness(true, time.Hour, 0)(ctx, n, pod, now)
}

// withDeletionCost returns a podState: the pod has been ready for one hour, and has the given
// pod-deletion-cost.
func withDeletionCost(cost string) podState {
	return func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
		ginkgo.GinkgoHelper()
		longReady(ctx, n, pod, now)
		n.Patch(ctx, podRef(pod), `{"metadata":{"annotations":{%q:%q}}}`, corev1.PodDeletionCost, cost)
	}
}

// withReadiness returns a podState: the pod is running, with the given readiness and number of
// restarts. The readiness last changed at now minus since.
func withReadiness(ready bool, since time.Duration, restarts int) podState {
	return func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
		ginkgo.GinkgoHelper()
		setPodRunning(ctx, n, pod, ready, now.Add(-since), restarts)
	}
}

// unchanged is a podState that changes nothing: the pod stays Pending.
func unchanged(ginkgo.SpecContext, *testenv.Namespace, string, time.Time) {}

// These Ginkgo specs test in which order a scale-down deletes pods.
var _ = ginkgo.Describe("scaling down", func() {
	for _, c := range []scaleDownCase{
		{"with the lower pod-deletion-cost", withDeletionCost("10"), withDeletionCost("5")},
		{"with a negative pod-deletion-cost", longReady, withDeletionCost("-1")},
		{"without pod-deletion-cost, which means 0", withDeletionCost("1"), longReady},
		{"with more restarts if their pod-deletion-costs are equal", withDeletionCost("3"), func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
			withDeletionCost("3")(ctx, n, pod, now)
			withReadiness(true, time.Hour, 4)(ctx, n, pod, now)
		}},
	} {
		spec("ReplicaSet/TestPodDeletionCost", "of two pods a ReplicaSet first deletes the one "+c.text,
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) { c.run(ctx, n, testenv.ReplicaSetKind) })
	}
	spec("ReplicationController/TestLogarithmicScaleDown", "of two pods a ReplicationController first deletes the one that became ready much later",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			scaleDownCase{kept: withReadiness(true, time.Hour, 0), deleted: withReadiness(true, time.Minute, 0)}.run(ctx, n, testenv.ReplicationControllerKind)
		})

	forEachReplicaOwner(func(kind string) {
		for _, c := range []scaleDownCase{
			{"of two pods a %s deletes a pending pod before a running pod that is not ready", withReadiness(false, 0, 0), unchanged},
			{"of two pods a %s deletes a pod that is not ready before a ready pod", withReadiness(true, 0, 0), withReadiness(false, time.Hour, 0)},
			{"of two pods that became ready at the same time a %s deletes the one with more restarts", withReadiness(true, time.Hour, 0), withReadiness(true, time.Hour, 4)},
		} {
			spec(kind+"/statement 10", fmt.Sprintf(c.text, kind),
				func(ctx ginkgo.SpecContext, n *testenv.Namespace) { c.run(ctx, n, kind) })
		}
		spec(kind+"/statement 10", "of two pods a "+kind+" deletes an unassigned pod before a pod on a node",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				labels := map[string]string{"app": "web"}
				n.Create(ctx, testenv.NewPod("assigned", labels))
				n.Eventually(ctx, testenv.GetPod("assigned"), testenv.Satisfy(testenv.Pod.Ready, "a running pod"))
				n.Create(ctx, testenv.NewPod("unassigned", labels, testenv.Unschedulable))
				// The pod without a node must be deleted, although it is ready.
				setPodsReady(ctx, n, time.Now().Add(-time.Hour), "unassigned")
				waitDelivered(ctx, n, podRef("assigned"), podRef("unassigned"))
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 2}.Build())
				n.Eventually(ctx, testenv.GetActivePods(set), podNames("assigned", "unassigned"))
				n.Patch(ctx, set, `{"spec":{"replicas":1}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podNames("assigned"))
			})
	})
})

// run scales the owner down by one and checks which pod the controller deletes.
//
// First, run removes a label of the pod template from both pods. When the status counts no fully
// labeled pods, the controller's cache contains the state of both pods. It does not matter which of
// the pods gets which state, because their names do not affect the order.
func (c scaleDownCase) run(ctx ginkgo.SpecContext, n *testenv.Namespace, kind string) {
	ginkgo.GinkgoHelper()
	set := n.Create(ctx, testenv.ReplicaOwnerSpec{
		Kind: kind, Name: "web", Replicas: 2, Pods: testenv.Unschedulable,
		Selector: map[string]string{"app": "web"}, Labels: map[string]string{"app": "web", "as": "made"},
	}.Build())
	names := waitActivePods(ctx, n, set, 2).Names()
	now := time.Now()
	c.kept(ctx, n, names[0], now)
	c.deleted(ctx, n, names[1], now)
	for _, name := range names {
		n.Patch(ctx, podRef(name), `{"metadata":{"labels":{"as":null}}}`)
	}
	n.Eventually(ctx, testenv.GetReplicaOwner(set), fullyLabeled(2, 0))
	n.Patch(ctx, set, `{"spec":{"replicas":1}}`)
	n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podNames(names[0]))
}
