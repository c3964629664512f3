package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// Which pods are a set's: adoption, release, and hands off what others control.
var _ = ginkgo.Describe("ownership", func() {
	forEachReplicaOwner(func(kind string) {
		for _, refers := range []struct {
			text string
			// owners are the ownerReferences of a pod that matches, given the set's.
			owners  func(set, other string) string
			adopted bool
		}{
			{"has no owner", func(string, string) string { return `[]` }, true},
			{"lists it as a non-controller owner", func(set, _ string) string { return `[` + set + `]` }, true},
			{"lists it as its controller", func(set, _ string) string { return `[` + asController(set) + `]` }, true},
			{"lists it as an owner and another object as its controller", func(set, other string) string { return `[` + set + `,` + asController(other) + `]` }, false},
		} {
			verb := "adopts"
			if !refers.adopted {
				verb = "does not adopt"
			}
			spec(kind+"/TestAdoption", fmt.Sprintf("a %s %s a matching pod that %s", kind, verb, refers.text),
				func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
					set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1, Pods: testenv.Unschedulable}.Build())
					own := waitActivePods(ctx, n, set, 1).Names()[0]
					// A pod that is ready stays when there is one too many, and the other goes.
					stray := n.Create(ctx, testenv.NewPod("stray", map[string]string{"app": "other"}, testenv.Unschedulable))
					setPodsReady(ctx, n, time.Now().Add(-time.Hour), stray.Name)
					other := testenv.Ref{Kind: "ServiceAccount", Name: "default"}
					n.Patch(ctx, stray, `{"metadata":{"labels":{"app":"web"},"ownerReferences":%s}}`,
						refers.owners(ownerReference(ctx, n, set), ownerReference(ctx, n, other)))
					if refers.adopted {
						n.Eventually(ctx, testenv.GetPod(stray.Name), controlledBy(set))
						n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podNames(stray.Name))
						return
					}
					n.Eventually(ctx, testenv.GetPod(stray.Name), controlledBy(other))
					waitDelivered(ctx, n, stray)
					n.Patch(ctx, set, `{"metadata":{"annotations":{"touch":"it"}}}`) // which wakes the controller
					n.Always("the pod that another controls is left alone", func(v *testenv.View) error {
						if pods := v.Pods().ControlledBy(other); len(pods) != 1 {
							return fmt.Errorf("the pods:\n%s", v.Pods())
						}
						return nil
					})
					n.Barrier(ctx)
					n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podNames(own))
				})
		}

		overlapping := map[string]string{testenv.ReplicaSetKind: "/TestOverlappingRSs", testenv.ReplicationControllerKind: "/TestOverlappingRCs"}
		spec(kind+overlapping[kind], "two objects of kind "+kind+" with the same selector manage only the pods that they created",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				labels := map[string]string{"app": "web"}
				one := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "one", Replicas: 1, Selector: labels, Labels: labels}.Build())
				two := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "two", Replicas: 2, Selector: labels, Labels: labels}.Build())
				n.Eventually(ctx, testenv.GetReplicaOwner(one), scaledTo(1))
				n.Eventually(ctx, testenv.GetReplicaOwner(two), scaledTo(2))
				n.Patch(ctx, one, `{"spec":{"replicas":3}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(one), podCount(3))
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(two), podCount(2))
				n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(5))
			})

		spec(kind+"/TestPodOrphaningAndAdoptionWhenLabelsChange", "a "+kind+" releases and replaces a pod that no longer matches, and adopts it when it matches again",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := waitActivePods(ctx, n, set, 1).Names()[0]
				n.Patch(ctx, podRef(pod), `{"metadata":{"labels":{"app":"elsewhere"}}}`)
				n.Eventually(ctx, testenv.GetPod(pod), controlledBy(testenv.Ref{}))
				n.Eventually(ctx, testenv.GetActivePods(set), testenv.Satisfy(func(pods testenv.Pods) bool {
					return len(pods) == 1 && pods[0].Name != pod
				}, "another pod in the place of %s", pod))
				n.Patch(ctx, set, `{"spec":{"replicas":2}}`) // so that there is room for it
				n.Patch(ctx, podRef(pod), `{"metadata":{"labels":{"app":"web"}}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(2))
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
			})

		release := map[string]string{
			testenv.ReplicaSetKind:            "/adopt matching pods on creation and release no longer matching pods",
			testenv.ReplicationControllerKind: "/release no longer matching pods",
		}
		spec(kind+release[kind], "a "+kind+" releases a pod that no longer matches, does not delete it, and creates another",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				if kind == testenv.ReplicaSetKind { // of which it is one row
					waitDelivered(ctx, n, n.Create(ctx, testenv.NewPod("stray", map[string]string{"app": "web"})))
				}
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := waitActivePods(ctx, n, set, 1).Names()[0]
				if kind == testenv.ReplicaSetKind {
					n.Eventually(ctx, testenv.GetPod("stray"), controlledBy(set))
				}
				n.Patch(ctx, podRef(pod), `{"metadata":{"labels":{"app":"elsewhere"}}}`)
				n.EventuallyWithoutFaults(ctx, testenv.GetPod(pod), controlledBy(testenv.Ref{}))
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(1))
				n.EventuallyWithoutFaults(ctx, testenv.GetPod(pod), testenv.Satisfy(func(p testenv.Pod) bool { return p.Pod != nil && !p.Terminating() }, "the released pod, alive"))
			})

		spec(kind+"/TestGeneralPodAdoption", "a "+kind+" adopts its own pod again after its controller reference is removed",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := waitActivePods(ctx, n, set, 1).Names()[0]
				n.AlwaysWithoutProfile("it makes no other in its place", activePodsAtMost(set, 1))
				for _, owners := range []string{`[` + ownerReference(ctx, n, set) + `]`, `[]`} {
					// One that reads its pods at that very moment may count this one twice: trap 46.
					n.BarrierOf(ctx, kind)
					n.Patch(ctx, podRef(pod), `{"metadata":{"ownerReferences":%s}}`, owners)
					n.Eventually(ctx, testenv.GetPod(pod), controlledBy(set))
				}
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podNames(pod))
			})

		spec(kind+"/statement 5", "a "+kind+" that is deleted adopts nothing although its deletion is not in the controller's cache",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := waitActivePods(ctx, n, set, 1)[0].Name
				n.Eventually(ctx, testenv.GetReplicaOwner(set), statusCounts(1, 1, 1)) // and no more to write
				waitDelivered(ctx, n, set)                                     // what it has written itself too
				heal := n.Inject(ctx, "watch-stall", fmt.Sprintf(`{resource: %s}`, testenv.ResourceOf(kind)))
				n.Delete(ctx, set, metav1.DeletePropagationOrphan)
				n.Eventually(ctx, testenv.GetPod(pod), controlledBy(testenv.Ref{}))
				n.Always("the pod that was left behind is nobody's", func(v *testenv.View) error {
					if taken := v.Pods().ControlledBy(set); len(taken) > 0 {
						return fmt.Errorf("the pods:\n%s", taken)
					}
					return nil
				})
				waitDelivered(ctx, n, podRef(pod))
				n.BarrierOf(ctx, testenv.EndpointsKind) // what it hears nothing of it cannot see to
				heal(ctx)
				n.EventuallyWithoutFaults(ctx, testenv.Exists(set), gomega.BeFalse())
				n.EventuallyWithoutFaults(ctx, testenv.GetPod(pod), controlledBy(testenv.Ref{}))
			}, withoutProfile("what it has not heard must be what this fault holds back"))

		spec(kind+"/TestExtraPodsAdoptionAndDeletion", "a "+kind+" adopts existing matching pods and deletes surplus pods",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				var strays []testenv.Ref
				for i := range 3 {
					strays = append(strays, n.Create(ctx, testenv.NewPod(fmt.Sprintf("stray-%d", i), map[string]string{"app": "web"})))
				}
				waitDelivered(ctx, n, strays...)
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 2}.Build())
				n.Eventually(ctx, testenv.GetPods(), podCount(2))
				n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), testenv.Satisfy(func(pods testenv.Pods) bool {
					return len(pods) == 2 && strings.HasPrefix(pods[0].Name, "stray-") && strings.HasPrefix(pods[1].Name, "stray-")
				}, "two of %v", strays))
			})

		spec(kind+"/statement 6", "a "+kind+" that fails to adopt a matching pod creates no pods until the adoption succeeds",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				heal := n.Inject(ctx, "api-error", fmt.Sprintf(`{verb: patch, resource: pods, namespace: %s, code: 500}`, n.Name))
				stray := n.Create(ctx, testenv.NewPod("stray", map[string]string{"app": "web"}))
				n.Always("no pod is made beyond the second", podsAtMost(3))
				waitDelivered(ctx, n, stray)
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 3}.Build())
				n.Eventually(ctx, n.FaultsFired("api-error"), gomega.BeNumerically(">=", 3))
				gomega.Expect(n.Requests("create", "pods")).To(gomega.BeEmpty(), "creates while the adoption fails")
				heal(ctx)
				n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podCount(3))
				n.EventuallyWithoutFaults(ctx, testenv.GetPod(stray.Name), controlledBy(set))
			}, withoutProfile("what it counts are the requests that this fault, and no other, lets through"))

		spec(kind+"/statement 7", "a "+kind+" that is being deleted neither creates nor adopts pods",
			func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
				set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: kind, Name: "web", Replicas: 2, Pods: testenv.UnschedulableWithFinalizer}.Build())
				waitActivePods(ctx, n, set, 2)
				// It stays, terminating, until the end. Its pods are deleted when it knows that
				// it is itself, and stay, terminating, as well.
				n.Patch(ctx, set, `{"metadata":{"finalizers":[%q]}}`, testenv.Finalizer)
				n.Delete(ctx, set, metav1.DeletePropagationBackground)
				n.Eventually(ctx, testenv.GetReplicaOwner(set), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
					return s.GetDeletionTimestamp() != nil && s.ObservedGeneration == s.GetGeneration()
				}, "a status of one that is being deleted"))
				present := n.Eventually(ctx, testenv.GetPods(), gomega.Not(gomega.BeEmpty())).(testenv.Pods)
				stray := n.Create(ctx, testenv.NewPod("stray", map[string]string{"app": "web"}, testenv.Unschedulable))
				n.Always("no further pod is made", podsAtMost(len(present)+1))
				n.Always("the pod that is nobody's stays so", func(v *testenv.View) error {
					if v.Pods().ControlledBy(set).Filter(func(p testenv.Pod) bool { return p.Name == stray.Name }) != nil {
						return fmt.Errorf("%s has adopted it", set)
					}
					return nil
				})
				for _, name := range present.Names() {
					n.Delete(ctx, podRef(name), "")
				}
				n.Eventually(ctx, testenv.GetReplicaOwner(set), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s.Replicas == 0 }, "a status that counts no pods"))
				n.Barrier(ctx)
				removePodFinalizers(ctx, n)
				removeFinalizer(ctx, n, set)
				n.Delete(ctx, stray, "")
				n.EventuallyWithoutFaults(ctx, testenv.Exists(set), gomega.BeFalse())
				n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(0))
			})
	})

	spec("ReplicationController/adopt matching pods on creation", "a ReplicationController adopts a matching pod that existed before it, and creates no other",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			waitDelivered(ctx, n, n.Create(ctx, testenv.NewPod("stray", map[string]string{"app": "web"})))
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicationControllerKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, testenv.GetPod("stray"), controlledBy(set))
			n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set), podNames("stray"))
		})

	spec("ReplicaSet/TestRSSelectorImmutability", "the API server rejects a change of a ReplicaSet's selector",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(1))
			err := n.TryPatch(ctx, set, `{"spec":{"selector":{"matchLabels":{"app":"else"}},"template":{"metadata":{"labels":{"app":"else"}}}}}`)
			gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("field is immutable")))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set), scaledTo(1))
		})

	spec("ReplicaSet/TestReplicaSetsAppsV1DefaultGCPolicy", "the pods of a ReplicaSet are deleted with it if no propagation policy is given",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			set := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 2}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(set), scaledTo(2))
			n.Delete(ctx, set, "")
			n.EventuallyWithoutFaults(ctx, testenv.Exists(set), gomega.BeFalse())
			n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(0))
		})

	spec("ReplicaSet/list and delete a collection of ReplicaSets", "ReplicaSets that are deleted by label are deleted with all of their pods, and other pods remain",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			web := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 2}.Build())
			other := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "other", Replicas: 1}.Build())
			n.Eventually(ctx, testenv.GetReplicaOwner(web), scaledTo(2))
			n.Eventually(ctx, testenv.GetReplicaOwner(other), scaledTo(1))
			n.DeleteAll(ctx, testenv.ReplicaSetKind, "app=web")
			n.EventuallyWithoutFaults(ctx, testenv.Exists(web), gomega.BeFalse())
			n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(1))
			n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(other), podCount(1))
		})
})

// ownerReference is a reference to an object as an owner that does not control, in JSON.
func ownerReference(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref) string {
	ginkgo.GinkgoHelper()
	uid := n.Eventually(ctx, testenv.GetUID(ref), gomega.Not(gomega.BeEquivalentTo(""))).(types.UID)
	version := "v1"
	if ref.Kind == testenv.ReplicaSetKind || ref.Kind == testenv.DeploymentKind {
		version = "apps/v1"
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}`, version, ref.Kind, ref.Name, uid)
}

// asController makes a reference one to a controller.
func asController(owner string) string {
	return strings.TrimSuffix(owner, "}") + `,"controller":true,"blockOwnerDeletion":true}`
}

// podsAtMost is the invariant that there are never more active pods than so many.
func podsAtMost(count int) func(*testenv.View) error {
	return func(v *testenv.View) error {
		if pods := v.Pods(); len(pods) > count {
			return fmt.Errorf("%d pods:\n%s", len(pods), pods)
		}
		return nil
	}
}
