package conformance

import (
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// choice is two pods of a set that is to have one less, and which one goes.
type choice struct {
	text        string
	stays, goes state
}

// state gives a held pod what tells it from others. It reckons from a time that is one
// for both pods of a choice: of two that differ by a second in how long they have been
// ready, upstream takes either.
type state func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time)

// alike is a pod that has long been ready.
func alike(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
	running(true, time.Hour, 0)(ctx, n, pod, now)
}

// worth is a pod that has long been ready and has a deletion cost.
func worth(cost string) state {
	return func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
		ginkgo.GinkgoHelper()
		alike(ctx, n, pod, now)
		n.Patch(ctx, podRef(pod), `{"metadata":{"annotations":{%q:%q}}}`, corev1.PodDeletionCost, cost)
	}
}

// running is a pod that runs, and has been ready or not for so long, after so many
// restarts.
func running(ready bool, since time.Duration, restarts int) state {
	return func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
		ginkgo.GinkgoHelper()
		makeRunning(ctx, n, pod, ready, now.Add(-since), restarts)
	}
}

// pending is a pod that nothing has happened to.
func pending(ginkgo.SpecContext, *testenv.Namespace, string, time.Time) {}

// Which pod goes when there is to be one less.
var _ = ginkgo.Describe("scaling down", func() {
	for _, c := range []choice{
		{"the lower pod-deletion-cost", worth("10"), worth("5")},
		{"a pod-deletion-cost below that which all pods have", alike, worth("-1")},
		{"no pod-deletion-cost, which is as one of 0,", worth("1"), alike},
		{"more restarts, where their pod-deletion-costs are equal,", worth("3"), func(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, now time.Time) {
			worth("3")(ctx, n, pod, now)
			running(true, time.Hour, 4)(ctx, n, pod, now)
		}},
	} {
		spec("ReplicaSet/TestPodDeletionCost", "of two pods a ReplicaSet deletes the one with "+c.text+" first",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) { c.decide(ctx, n, testenv.ReplicaSetKind) })
	}
	spec("ReplicationController/TestLogarithmicScaleDown", "of two pods a ReplicationController deletes the one first that has been ready for far less time",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			choice{stays: running(true, time.Hour, 0), goes: running(true, time.Minute, 0)}.decide(ctx, n, testenv.ReplicationControllerKind)
		})

	forEachReplicator(func(kind string) {
		for _, c := range []choice{
			{"a pending one before one that runs, ready or not", running(false, 0, 0), pending},
			{"one that is not ready before one that is", running(true, 0, 0), running(false, time.Hour, 0)},
			{"one that has restarted more often before one that has been ready for as long", running(true, time.Hour, 0), running(true, time.Hour, 4)},
		} {
			spec(kind+"/statement 10", fmt.Sprintf("of two pods a %s deletes %s", kind, c.text),
				func(ctx ginkgo.SpecContext, n *testenv.Namespace) { c.decide(ctx, n, kind) })
		}
		spec(kind+"/statement 10", "of two pods a "+kind+" deletes one that no node has taken before one that runs on a node",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				labels := map[string]string{"app": "web"}
				n.Create(ctx, testenv.NewPod("placed", labels))
				n.Eventually(ctx, testenv.APod("placed"), testenv.Be(testenv.Pod.Ready, "a pod that runs"))
				n.Create(ctx, testenv.NewPod("unplaced", labels, testenv.Held))
				makeReady(ctx, n, time.Now().Add(-time.Hour), "unplaced") // which counts for less
				told(ctx, n, podRef("placed"), podRef("unplaced"))
				set := n.Create(ctx, testenv.SetSpec{Kind: kind, Name: "web", Replicas: 2}.Build())
				n.Eventually(ctx, testenv.PodsOf(set), named("placed", "unplaced"))
				n.Patch(ctx, set, `{"spec":{"replicas":1}}`)
				n.EventuallyStable(ctx, testenv.PodsOf(set), named("placed"))
			})
	})
})

// decide has a set choose. The pods lose a label last: a status that does not count
// it any more is of one who knows both pods as they are. Which names they have changes
// nothing.
func (c choice) decide(ctx ginkgo.SpecContext, n *testenv.Namespace, kind string) {
	ginkgo.GinkgoHelper()
	set := n.Create(ctx, testenv.SetSpec{
		Kind: kind, Name: "web", Replicas: 2, Pods: testenv.Held,
		Selector: map[string]string{"app": "web"}, Labels: map[string]string{"app": "web", "as": "made"},
	}.Build())
	names := podsOf(ctx, n, set, 2).Names()
	now := time.Now()
	c.stays(ctx, n, names[0], now)
	c.goes(ctx, n, names[1], now)
	for _, name := range names {
		n.Patch(ctx, podRef(name), `{"metadata":{"labels":{"as":null}}}`)
	}
	n.Eventually(ctx, testenv.ASet(set), labeled(2, 0))
	n.Patch(ctx, set, `{"spec":{"replicas":1}}`)
	n.EventuallyStable(ctx, testenv.PodsOf(set), named(names[0]))
}
