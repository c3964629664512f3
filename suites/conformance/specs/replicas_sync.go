package specs

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// eventSource maps a kind to the source component in the events of its controller.
var eventSource = map[string]string{
	testenv.ReplicaSetKind: "replicaset-controller", testenv.ReplicationControllerKind: "replication-controller",
}

// These Ginkgo specs test the creation of pods: their content, events, retries and failures.
var _ = ginkgo.Describe("pod creation", func() {
	forEachReplicaOwner(func(kind string) {
		spec(kind+"/statement 2", "a "+kind+" creates each pod once although none of them appears in its cache",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				heal := n.Inject(ctx, "watch-stall", `{resource: pods}`)
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 3}.Build())
				n.AlwaysWithoutProfile("there are at most 3 pods", activePodsAtMost(set, 3))
				n.Eventually(ctx, testenv.GetActivePods(set), podCount(3))
				for i := range 5 { // each patch makes the controller sync the object
					n.Patch(ctx, set, `{"metadata":{"annotations":{"touch":"%d"}}}`, i)
					waitDelivered(ctx, n, set)
				}
				heal(ctx)
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(3))
			}, withoutProfile("only this fault may stall watches and lose responses"))

		spec(kind+"/statement 2", "a "+kind+" whose pod creates failed creates the pods as soon as the API server accepts them, without waiting for expectations to expire",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				n.Inject(ctx, "api-error", fmt.Sprintf(`{verb: create, resource: pods, namespace: %s, code: 403, times: 4}`, n.Name))
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 3}.Build())
				n.Eventually(ctx, n.FaultsFired("api-error"), gomega.BeNumerically(">=", 4))
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(3))
			})

		spec(kind+"/statement 8", "a "+kind+" starts with one create and not with all of them when the API server rejects every pod",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				createQuota(ctx, n, corev1.ResourcePods, 0, testenv.NewPod("one", nil))
				const wanted = 200
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: wanted}.Build())
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), ownerCondition("ReplicaFailure", "True", "FailedCreate"))
				// Each sync sends one request, with increasing back-off between syncs.
				gomega.Expect(len(n.Requests("create", "pods"))).To(gomega.BeNumerically("<", wanted/2), "rejected create requests")
			})

		spec(kind+"/statement 11", "the pods of a "+kind+" have the labels, annotations and finalizers of its template, its name as prefix, and a controller reference to it",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1, Pods: func(t *corev1.PodTemplateSpec) {
					testenv.WithFinalizer(t)
					t.Labels["tier"] = "front"
					t.Annotations = map[string]string{"note": "from the template"}
				}}.Build())
				pod := n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(1)).(testenv.Pods)[0]
				uid := n.Eventually(ctx, testenv.GetUID(set), gomega.Not(gomega.BeEmpty()))
				gomega.Expect(pod.GenerateName).To(gomega.Equal("web-"))
				gomega.Expect(pod.Labels).To(gomega.Equal(map[string]string{"app": "web", "tier": "front"}))
				gomega.Expect(pod.Annotations).To(gomega.HaveKeyWithValue("note", "from the template"))
				gomega.Expect(pod.Finalizers).To(gomega.Equal([]string{testenv.Finalizer}))
				gomega.Expect(pod.OwnerReferences).To(gomega.HaveLen(1))
				owner := pod.OwnerReferences[0]
				gomega.Expect(owner.UID).To(gomega.Equal(uid))
				gomega.Expect(owner.Controller).To(gomega.HaveValue(gomega.BeTrue()))
				gomega.Expect(owner.BlockOwnerDeletion).To(gomega.HaveValue(gomega.BeTrue()))
			})

		spec(kind+"/statement 12", "a "+kind+" emits events for pods that it created, deleted or failed to create",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				n.Eventually(ctx, testenv.GetEvents(set), eventWithPrefix("Normal SuccessfulCreate ("+eventSource[kind]+"): Created pod: web-"))
				n.Patch(ctx, set, `{"spec":{"replicas":0}}`)
				n.Eventually(ctx, testenv.GetEvents(set), eventWithPrefix("Normal SuccessfulDelete ("+eventSource[kind]+"): Deleted pod: web-"))
				createQuota(ctx, n, corev1.ResourcePods, 0, testenv.NewPod("one", nil))
				n.Patch(ctx, set, `{"spec":{"replicas":1}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetEvents(set), eventWithPrefix("Warning FailedCreate ("+eventSource[kind]+"): Error creating: "))
			})

		spec(kind+"/statement 16", "a "+kind+" in a terminating namespace creates no more pods and reports no failure",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				// Finalizers keep the pods terminating. The spec deletes the owner after the pods.
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 2, Pods: testenv.UnschedulableWithFinalizer}.Build())
				waitActivePods(ctx, n, set, 2)
				n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
				n.Always("the status has no ReplicaFailure condition", func(v *testenv.View) error {
					if s := v.ReplicaOwner(set); s != nil && s.Condition("ReplicaFailure").Status != "" {
						return fmt.Errorf("%s", s)
					}
					return nil
				})
				before := len(n.Requests("create", "pods"))
				n.DeleteNamespace(ctx)
				n.Eventually(ctx, testenv.GetReplicaOwner(set), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s != nil && s.Replicas == 0 }, "a status that counts no pods"))
				removePodFinalizers(ctx, n)
				n.EventuallyWithoutFaults(ctx, testenv.Exists(set), gomega.BeFalse())
				gomega.Expect(len(n.Requests("create", "pods"))-before).To(gomega.BeNumerically("<", 12), "create requests in a terminating namespace")
			}, withoutProfile("faults of a profile would also cause the condition that must not appear"))

		spec(kind+"/statement 17", "a "+kind+" retries until the API server accepts its pods, and does not delay other objects",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				// The API server rejects pods whose service account does not exist.
				rejected := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "rejected", Replicas: 2, Pods: func(t *corev1.PodTemplateSpec) {
					t.Spec.ServiceAccountName = "late"
				}}.Build())
				n.Eventually(ctx, testenv.GetReplicaOwner(rejected), ownerCondition("ReplicaFailure", "True", "FailedCreate"))
				other := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 2}.Build())
				n.Eventually(ctx, testenv.GetReplicaOwner(other), scaledTo(2))
				n.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(rejected), scaledTo(2))
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(rejected), ownerCondition("ReplicaFailure", "", ""))
			})

		spec(kind+"/serve a basic image on each replica with a public image", "every replica of a "+kind+" runs its image",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				n.RequireKubelets("a simulated kubelet runs no images")
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 2}.Build())
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), allReady(2))
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), testenv.Satisfy(func(pods testenv.Pods) bool {
					return len(pods) == 2 && len(pods.Filter(containerRuns)) == 2
				}, "2 pods, each with one running container"))
			})
	})

	spec("ReplicaSet/statement 1", "a ReplicaSet that is scaled up again waits until the pods that it created are in its cache",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(set), allReady(1))
			heal := n.Inject(ctx, "watch-stall", `{resource: pods}`)
			n.Patch(ctx, set, `{"spec":{"replicas":3}}`)
			n.Eventually(ctx, testenv.GetActivePods(set), podCount(3))
			n.Always("there are at most 3 pods while the watch is stalled", activePodsAtMost(set, 3))
			n.Patch(ctx, set, `{"spec":{"replicas":5}}`)
			waitDelivered(ctx, n, set)
			n.ClearInvariants()
			heal(ctx)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(5))
		}, withoutProfile("only this fault may stall watches and lose responses"))

	spec("ReplicationController/statement 3", "a ReplicationController updates its status for the latest generation while it waits for pods that it created",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicationControllerKind, Name: "web", Replicas: 0}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(0))
			heal := n.Inject(ctx, "watch-stall", `{resource: pods}`)
			n.Patch(ctx, set, `{"spec":{"replicas":2}}`)
			n.Eventually(ctx, testenv.GetActivePods(set), podCount(2))
			n.Patch(ctx, set, `{"spec":{"replicas":4}}`)
			n.Eventually(ctx, testenv.GetReplicaOwner(set), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
				return s.Desired == 4 && s.ObservedGeneration == s.GetGeneration()
			}, "a status for the latest generation"))
			n.Eventually(ctx, testenv.GetActivePods(set), podCount(2))
			heal(ctx)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(4))
		}, withoutProfile("only this fault may stall watches and lose responses"))

	spec("ReplicaSet/Replace and Patch", "a ReplicaSet follows an update and a subsequent patch",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			var rs appsv1.ReplicaSet
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(1))
			rs.Name = set.Name
			n.Replace(ctx, &rs, func() {
				*rs.Spec.Replicas = 2
				rs.Spec.Template.Annotations = map[string]string{"version": "2"}
			})
			n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
			n.Patch(ctx, set, `{"spec":{"replicas":3}}`)
			pods := n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(3)).(testenv.Pods)
			gomega.Expect(pods.Filter(func(p testenv.Pod) bool { return p.Annotations["version"] == "2" })).To(gomega.HaveLen(2),
				"pods created after the change of the template:\n%s", pods)
		}, withoutProfile("after a lost response, either of two pods may be deleted"))

	spec("ReplicaSet/validate ReplicaSet Status endpoints", "a ReplicaSet keeps status conditions that other clients set",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(set), allReady(1))
			n.PatchSubresource(ctx, set, "status", `{"status":{"conditions":[{"type":"StatusPatched","status":"True","reason":"E2E"}]}}`)
			waitDelivered(ctx, n, set)
			n.Patch(ctx, set, `{"spec":{"replicas":2}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), ownerCondition("StatusPatched", "True", "E2E"))
		})

	spec("ReplicationController/lifecycle of a ReplicationController", "a ReplicationController follows its creation, patches, scales and deletion",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicationControllerKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(set), allReady(1))
			n.Patch(ctx, set, `{"metadata":{"labels":{"patched":"yes"}},"spec":{"replicas":2}}`)
			n.Eventually(ctx, testenv.GetReplicaOwner(set), allReady(2))
			n.PatchSubresource(ctx, set, "status", `{"status":{"readyReplicas":0,"availableReplicas":0}}`)
			n.PutScale(ctx, set, 1) // this update causes a sync, which also corrects the status
			n.Eventually(ctx, testenv.GetReplicaOwner(set), statusCounts(1, 1, 1))
			n.DeleteAll(ctx, testenv.ReplicationControllerKind, map[string]string{"patched": "yes"})
			n.EventuallyWithoutFaults(ctx, testenv.Exists(set), gomega.BeFalse())
		})
})
