package specs

import (
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// These Ginkgo specs test the number of pods and the status of ReplicaSets and
// ReplicationControllers.
var _ = ginkgo.Describe("replicas", func() {
	forEachReplicaOwner(func(kind string) {
		spec(kind+"/TestSpecReplicasChange", "a "+kind+" follows spec.replicas up, down and to zero, and keeps its pods when its template changes",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 3}.Build())
				n.Eventually(ctx, testenv.GetActivePods(set), podCount(3))
				n.Patch(ctx, set, `{"spec":{"replicas":5}}`)
				n.Eventually(ctx, testenv.GetActivePods(set), podCount(5))
				n.Patch(ctx, set, `{"spec":{"replicas":2}}`)
				n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(2))

				before := waitActivePods(ctx, n, set, 2).Names()
				n.Patch(ctx, set, `{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
				n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(2)) // wait until the status has the new generation
				n.Eventually(ctx, testenv.GetActivePods(set), podNames(before...))

				n.Patch(ctx, set, `{"spec":{"replicas":0}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(0))
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(0))
			})

		spec(kind+"/TestDeletingAndFailedPods", "a "+kind+" replaces terminating pods and failed pods, and does not delete them",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 2, Pods: testenv.UnschedulableWithFinalizer}.Build())
				old := waitActivePods(ctx, n, set, 2).Names()
				n.Always("the terminating and the failed pod exist", func(v *testenv.View) error {
					for _, name := range old {
						if !v.Has(podRef(name)) {
							return fmt.Errorf("pod %s does not exist", name)
						}
					}
					return nil
				})
				n.Delete(ctx, podRef(old[0]), "")
				n.PatchSubresource(ctx, podRef(old[1]), "status", `{"status":{"phase":"Failed"}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), testenv.Satisfy(func(pods testenv.Pods) bool {
					return len(pods) == 2 && pods[0].Name != old[0] && pods[1].Name != old[1] && pods[0].Name != old[1] && pods[1].Name != old[0]
				}, "2 pods other than %v", old))
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
				failed := n.Eventually(ctx, testenv.GetPod(old[1]), controlledBy(set)).(testenv.Pod)
				gomega.Expect(failed.Terminating()).To(gomega.BeFalse(), "the failed pod is terminating")
			})

		spec(kind+"/TestReadyAndAvailableReplicas", "the status of a "+kind+" counts existing, ready and available pods",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 3, MinReadySeconds: 3600, Pods: testenv.Unschedulable}.Build())
				names := waitActivePods(ctx, n, set, 3).Names()
				n.Eventually(ctx, testenv.GetReplicaOwner(set), statusCounts(3, 0, 0))
				setPodsReady(ctx, n, time.Now(), names[0])
				n.Eventually(ctx, testenv.GetReplicaOwner(set), statusCounts(3, 1, 0))
				setPodsReady(ctx, n, time.Now().Add(-2*time.Hour), names[1])
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), statusCounts(3, 2, 1))
			})

		spec(kind+"/statement 15", "a "+kind+" counts a pod as available after minReadySeconds without another event",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1, MinReadySeconds: 3, Pods: testenv.Unschedulable}.Build())
				name := waitActivePods(ctx, n, set, 1).Names()[0]
				ready := time.Now()
				setPodsReady(ctx, n, ready, name)
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), statusCounts(1, 1, 1))
				// API timestamps have whole seconds.
				gomega.Expect(time.Since(ready)).To(gomega.BeNumerically(">", 2*time.Second), "time until the pod is available")
			})

		scaleSubresource := map[string]string{testenv.ReplicaSetKind: "/TestRSScaleSubresource", testenv.ReplicationControllerKind: "/TestRCScaleSubresource"}
		spec(kind+scaleSubresource[kind], "a "+kind+" follows its scale subresource, and the subresource reports its status",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(1))
				n.PatchSubresource(ctx, set, "scale", `{"spec":{"replicas":2}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(2))
				scale := n.Scale(ctx, set)
				gomega.Expect(scale.Spec.Replicas).To(gomega.BeEquivalentTo(2))
				gomega.Expect(scale.Status.Replicas).To(gomega.BeEquivalentTo(2))
				gomega.Expect(scale.Status.Selector).To(gomega.Equal("app=web"))
			})

		readScale := map[string]string{testenv.ReplicaSetKind: "/working scale subresource", testenv.ReplicationControllerKind: "/get and update a ReplicationController scale"}
		spec(kind+readScale[kind], "a "+kind+" follows an update of its scale subresource",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 3}.Build())
				n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(3))
				n.PutScale(ctx, set, 1)
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(1))
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(1))
			})

		spec(kind+"/TestFullyLabeledReplicas", "the status of a "+kind+" counts the pods that have all labels of the template as fullyLabeledReplicas",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{
					Kind: kind, Name: "web", Replicas: 3,
					Selector: map[string]string{"app": "web"}, Labels: map[string]string{"app": "web", "tier": "front"},
				}.Build())
				names := waitActivePods(ctx, n, set, 3).Names()
				n.Eventually(ctx, testenv.GetReplicaOwner(set), fullyLabeled(3, 3))
				n.Patch(ctx, podRef(names[0]), `{"metadata":{"labels":{"tier":"back"}}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), fullyLabeled(3, 2))
				// The controller must keep pods that lack a label of the template.
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podNames(names...))
			})

		spec(kind+"/surface a failure condition on a common issue like exceeded quota", "a "+kind+" reports ReplicaFailure when the quota is exceeded, and removes the condition when it needs no more pods",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				createQuota(ctx, n, corev1.ResourcePods, 2, testenv.NewPod("one", nil))
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 3}.Build())
				n.Eventually(ctx, testenv.GetReplicaOwner(set), ownerCondition("ReplicaFailure", "True", "FailedCreate"))
				n.Patch(ctx, set, `{"spec":{"replicas":2}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), ownerCondition("ReplicaFailure", "", ""))
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
			})
	})

	spec("ReplicaSet/TestTerminatingReplicas", "the status of a ReplicaSet counts terminating pods separately until they are gone",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 3, Pods: testenv.OnMissingNode}.Build())
			names := waitActivePods(ctx, n, set, 3).Names()
			n.Eventually(ctx, testenv.GetReplicaOwnerWithPods(set), terminatingCount(n, 3, 0))
			n.Delete(ctx, podRef(names[0]), "")
			// The controller must replace the pod although it still exists.
			n.Eventually(ctx, testenv.GetReplicaOwnerWithPods(set), terminatingCount(n, 3, 1))
			n.Patch(ctx, set, `{"spec":{"replicas":1}}`)
			n.Eventually(ctx, testenv.GetReplicaOwnerWithPods(set), terminatingCount(n, 1, 3))
			removeFinalizer(ctx, n, podRef(names[0]))
			n.Eventually(ctx, testenv.Exists(podRef(names[0])), gomega.BeFalse())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwnerWithPods(set), terminatingCount(n, 1, 2))
		})
})
