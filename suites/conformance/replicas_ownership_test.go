package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/world"
)

// Which pods are a set's: adoption, release, and hands off what others control.
var _ = ginkgo.Describe("ownership", func() {
	forEachReplicator(func(kind string) {
		for _, refers := range []struct {
			text string
			// owners are the ownerReferences of a pod that matches, given the set's.
			owners  func(set, other string) string
			adopted bool
		}{
			{"has no owner", func(string, string) string { return `[]` }, true},
			{"names it as an owner that does not control", func(set, _ string) string { return `[` + set + `]` }, true},
			{"names it as its controller", func(set, _ string) string { return `[` + controls(set) + `]` }, true},
			{"names it as an owner and another as its controller", func(set, other string) string { return `[` + set + `,` + controls(other) + `]` }, false},
		} {
			verb := "adopts"
			if !refers.adopted {
				verb = "leaves alone"
			}
			spec(kind+"/TestAdoption", fmt.Sprintf("a %s %s a matching pod that %s", kind, verb, refers.text),
				func(ctx ginkgo.SpecContext, n *world.Namespace) {
					set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 1, Pods: world.Held}.Build())
					own := podsOf(ctx, n, set, 1).Names()[0]
					// A pod that is ready stays when there is one too many, and the other goes.
					stray := n.Create(ctx, world.NewPod("stray", map[string]string{"app": "other"}, world.Held))
					makeReady(ctx, n, time.Now().Add(-time.Hour), stray.Name)
					other := world.Ref{Kind: "ServiceAccount", Name: "default"}
					n.Patch(ctx, stray, `{"metadata":{"labels":{"app":"web"},"ownerReferences":%s}}`,
						refers.owners(ownerOf(ctx, n, set), ownerOf(ctx, n, other)))
					if refers.adopted {
						n.Eventually(ctx, world.APod(stray.Name), controlledBy(set))
						n.InTheEnd(ctx, world.PodsOf(set), named(stray.Name))
						return
					}
					n.Eventually(ctx, world.APod(stray.Name), controlledBy(other))
					told(ctx, n, stray)
					n.Patch(ctx, set, `{"metadata":{"annotations":{"touch":"it"}}}`) // which wakes the controller
					n.Always("the pod that another controls is left alone", func(v *world.View) error {
						if pods := v.Pods().Of(other); len(pods) != 1 {
							return fmt.Errorf("the pods:\n%s", v.Pods())
						}
						return nil
					})
					n.Barrier(ctx)
					n.InTheEnd(ctx, world.PodsOf(set), named(own))
				})
		}

		overlapping := map[string]string{world.ReplicaSetKind: "/TestOverlappingRSs", world.ReplicationControllerKind: "/TestOverlappingRCs"}
		spec(kind+overlapping[kind], "two of kind "+kind+" with one selector each keep to the pods that they made",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				labels := map[string]string{"app": "web"}
				one := n.Create(ctx, world.SetSpec{Kind: kind, Name: "one", Replicas: 1, Selector: labels, Labels: labels}.Build())
				two := n.Create(ctx, world.SetSpec{Kind: kind, Name: "two", Replicas: 2, Selector: labels, Labels: labels}.Build())
				n.Eventually(ctx, world.ASet(one), scaledTo(1))
				n.Eventually(ctx, world.ASet(two), scaledTo(2))
				n.Patch(ctx, one, `{"spec":{"replicas":3}}`)
				n.InTheEnd(ctx, world.PodsOf(one), thatMany(3))
				n.InTheEnd(ctx, world.PodsOf(two), thatMany(2))
				n.InTheEnd(ctx, world.AllPods(), thatMany(5))
			})

		spec(kind+"/TestPodOrphaningAndAdoptionWhenLabelsChange", "a "+kind+" releases and replaces a pod that matches no more, and adopts it again when it does",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := podsOf(ctx, n, set, 1).Names()[0]
				n.Patch(ctx, podRef(pod), `{"metadata":{"labels":{"app":"elsewhere"}}}`)
				n.Eventually(ctx, world.APod(pod), controlledBy(world.Ref{}))
				n.Eventually(ctx, world.PodsOf(set), world.Be(func(pods world.Pods) bool {
					return len(pods) == 1 && pods[0].Name != pod
				}, "another pod in the place of %s", pod))
				n.Patch(ctx, set, `{"spec":{"replicas":2}}`) // so that there is room for it
				n.Patch(ctx, podRef(pod), `{"metadata":{"labels":{"app":"web"}}}`)
				n.InTheEnd(ctx, world.PodsOf(set), thatMany(2))
				n.InTheEnd(ctx, world.ASet(set), scaledTo(2))
			})

		release := map[string]string{
			world.ReplicaSetKind:            "/adopt matching pods on creation and release no longer matching pods",
			world.ReplicationControllerKind: "/release no longer matching pods",
		}
		spec(kind+release[kind], "a "+kind+" releases a pod that matches no more, which lives on, and makes another",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				if kind == world.ReplicaSetKind { // of which it is one row
					told(ctx, n, n.Create(ctx, world.NewPod("stray", map[string]string{"app": "web"})))
				}
				set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := podsOf(ctx, n, set, 1).Names()[0]
				if kind == world.ReplicaSetKind {
					n.Eventually(ctx, world.APod("stray"), controlledBy(set))
				}
				n.Patch(ctx, podRef(pod), `{"metadata":{"labels":{"app":"elsewhere"}}}`)
				n.InTheEnd(ctx, world.APod(pod), controlledBy(world.Ref{}))
				n.InTheEnd(ctx, world.PodsOf(set), thatMany(1))
				n.InTheEnd(ctx, world.APod(pod), world.Be(func(p world.Pod) bool { return p.Pod != nil && !p.Terminating() }, "the released pod, alive"))
			})

		spec(kind+"/TestGeneralPodAdoption", "a "+kind+" takes back a pod of its own that is told it has no controller",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := podsOf(ctx, n, set, 1).Names()[0]
				n.Unfailing("it makes no other in its place", atMost(set, 1))
				for _, owners := range []string{`[` + ownerOf(ctx, n, set) + `]`, `[]`} {
					// One that reads its pods at that very moment may count this one twice: trap 46.
					n.BarrierOf(ctx, kind)
					n.Patch(ctx, podRef(pod), `{"metadata":{"ownerReferences":%s}}`, owners)
					n.Eventually(ctx, world.APod(pod), controlledBy(set))
				}
				n.InTheEnd(ctx, world.PodsOf(set), named(pod))
			})

		spec(kind+"/statement 5", "a "+kind+" that is going adopts nothing, though the controller has not heard of its end",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 1}.Build())
				pod := podsOf(ctx, n, set, 1)[0].Name
				n.Eventually(ctx, world.ASet(set), counts(1, 1, 1)) // and no more to write
				told(ctx, n, set)                                   // what it has written itself too
				heal := n.Inject(ctx, "watch-stall", fmt.Sprintf(`{resource: %s}`, world.ResourceOf(kind)))
				n.Delete(ctx, set, metav1.DeletePropagationOrphan)
				n.Eventually(ctx, world.APod(pod), controlledBy(world.Ref{}))
				n.Always("the pod that was left behind is nobody's", func(v *world.View) error {
					if taken := v.Pods().Of(set); len(taken) > 0 {
						return fmt.Errorf("the pods:\n%s", taken)
					}
					return nil
				})
				told(ctx, n, podRef(pod))
				n.BarrierOf(ctx, world.EndpointsKind) // what it hears nothing of it cannot see to
				heal(ctx)
				n.InTheEnd(ctx, world.Exists(set), gomega.BeFalse())
				n.InTheEnd(ctx, world.APod(pod), controlledBy(world.Ref{}))
			}, calm("what it has not heard must be what this fault holds back"))

		spec(kind+"/TestExtraPodsAdoptionAndDeletion", "a "+kind+" adopts the matching pods that are there, and deletes those that are too many",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				var strays []world.Ref
				for i := range 3 {
					strays = append(strays, n.Create(ctx, world.NewPod(fmt.Sprintf("stray-%d", i), map[string]string{"app": "web"})))
				}
				told(ctx, n, strays...)
				set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 2}.Build())
				n.Eventually(ctx, world.AllPods(), thatMany(2))
				n.InTheEnd(ctx, world.ASet(set), scaledTo(2))
				n.InTheEnd(ctx, world.PodsOf(set), world.Be(func(pods world.Pods) bool {
					return len(pods) == 2 && strings.HasPrefix(pods[0].Name, "stray-") && strings.HasPrefix(pods[1].Name, "stray-")
				}, "two of %v", strays))
			})

		spec(kind+"/statement 6", "a "+kind+" that may not adopt a matching pod makes none in its place until it knows",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				heal := n.Inject(ctx, "api-error", fmt.Sprintf(`{verb: patch, resource: pods, namespace: %s, code: 500}`, n.Name))
				stray := n.Create(ctx, world.NewPod("stray", map[string]string{"app": "web"}))
				n.Always("no pod is made beyond the second", atMostPods(3))
				told(ctx, n, stray)
				set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 3}.Build())
				n.Eventually(ctx, n.Fired("api-error"), gomega.BeNumerically(">=", 3))
				gomega.Expect(n.Requests("create", "pods")).To(gomega.BeEmpty(), "creates while the adoption fails")
				heal(ctx)
				n.InTheEnd(ctx, world.PodsOf(set), thatMany(3))
				n.InTheEnd(ctx, world.APod(stray.Name), controlledBy(set))
			}, calm("what it counts are the requests that this fault, and no other, lets through"))

		spec(kind+"/statement 7", "a "+kind+" that is being deleted makes no more pods, and adopts none",
			func(ctx ginkgo.SpecContext, n *world.Namespace) {
				set := n.Create(ctx, world.SetSpec{Kind: kind, Name: "web", Replicas: 2, Pods: world.HeldStaying}.Build())
				podsOf(ctx, n, set, 2)
				// It stays, terminating, until the end. Its pods are deleted when it knows that
				// it is itself, and stay, terminating, as well.
				n.Patch(ctx, set, `{"metadata":{"finalizers":[%q]}}`, world.Finalizer)
				n.Delete(ctx, set, metav1.DeletePropagationBackground)
				n.Eventually(ctx, world.ASet(set), world.Be(func(s *world.Set) bool {
					return s.GetDeletionTimestamp() != nil && s.Observed == s.GetGeneration()
				}, "a status of one that is being deleted"))
				present := n.Eventually(ctx, world.AllPods(), gomega.Not(gomega.BeEmpty())).(world.Pods)
				stray := n.Create(ctx, world.NewPod("stray", map[string]string{"app": "web"}, world.Held))
				n.Always("no further pod is made", atMostPods(len(present)+1))
				n.Always("the pod that is nobody's stays so", func(v *world.View) error {
					if v.Pods().Of(set).That(func(p world.Pod) bool { return p.Name == stray.Name }) != nil {
						return fmt.Errorf("%s has adopted it", set)
					}
					return nil
				})
				for _, name := range present.Names() {
					n.Delete(ctx, podRef(name), "")
				}
				n.Eventually(ctx, world.ASet(set), world.Be(func(s *world.Set) bool { return s.Replicas == 0 }, "a status that counts no pods"))
				n.Barrier(ctx)
				letAllGo(ctx, n)
				letGo(ctx, n, set)
				n.Delete(ctx, stray, "")
				n.InTheEnd(ctx, world.Exists(set), gomega.BeFalse())
				n.InTheEnd(ctx, world.AllPods(), thatMany(0))
			})
	})

	spec("ReplicationController/adopt matching pods on creation", "a ReplicationController adopts a matching pod that was there before it, and makes none",
		func(ctx ginkgo.SpecContext, n *world.Namespace) {
			told(ctx, n, n.Create(ctx, world.NewPod("stray", map[string]string{"app": "web"})))
			set := n.Create(ctx, world.SetSpec{Kind: world.ReplicationControllerKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, world.APod("stray"), controlledBy(set))
			n.InTheEnd(ctx, world.PodsOf(set), named("stray"))
		})

	spec("ReplicaSet/TestRSSelectorImmutability", "the selector of a ReplicaSet never changes, so that its pods remain its own",
		func(ctx ginkgo.SpecContext, n *world.Namespace) {
			set := n.Create(ctx, world.SetSpec{Kind: world.ReplicaSetKind, Name: "web", Replicas: 1}.Build())
			n.Eventually(ctx, world.ASet(set), scaledTo(1))
			err := n.TryPatch(ctx, set, `{"spec":{"selector":{"matchLabels":{"app":"else"}},"template":{"metadata":{"labels":{"app":"else"}}}}}`)
			gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("field is immutable")))
			n.InTheEnd(ctx, world.ASet(set), scaledTo(1))
		})

	spec("ReplicaSet/TestReplicaSetsAppsV1DefaultGCPolicy", "a ReplicaSet that is deleted without further words takes its pods along",
		func(ctx ginkgo.SpecContext, n *world.Namespace) {
			set := n.Create(ctx, world.SetSpec{Kind: world.ReplicaSetKind, Name: "web", Replicas: 2}.Build())
			n.Eventually(ctx, world.ASet(set), scaledTo(2))
			n.Delete(ctx, set, "")
			n.InTheEnd(ctx, world.Exists(set), gomega.BeFalse())
			n.InTheEnd(ctx, world.AllPods(), thatMany(0))
		})

	spec("ReplicaSet/list and delete a collection of ReplicaSets", "ReplicaSets that are deleted by their label go with all of their pods, and no others",
		func(ctx ginkgo.SpecContext, n *world.Namespace) {
			web := n.Create(ctx, world.SetSpec{Kind: world.ReplicaSetKind, Name: "web", Replicas: 2}.Build())
			other := n.Create(ctx, world.SetSpec{Kind: world.ReplicaSetKind, Name: "other", Replicas: 1}.Build())
			n.Eventually(ctx, world.ASet(web), scaledTo(2))
			n.Eventually(ctx, world.ASet(other), scaledTo(1))
			n.DeleteAll(ctx, world.ReplicaSetKind, "app=web")
			n.InTheEnd(ctx, world.Exists(web), gomega.BeFalse())
			n.InTheEnd(ctx, world.AllPods(), thatMany(1))
			n.InTheEnd(ctx, world.PodsOf(other), thatMany(1))
		})
})

// ownerOf is a reference to an object as an owner that does not control, in JSON.
func ownerOf(ctx ginkgo.SpecContext, n *world.Namespace, ref world.Ref) string {
	ginkgo.GinkgoHelper()
	uid := n.Eventually(ctx, world.UIDOf(ref), gomega.Not(gomega.BeEquivalentTo(""))).(types.UID)
	version := "v1"
	if ref.Kind == world.ReplicaSetKind || ref.Kind == world.DeploymentKind {
		version = "apps/v1"
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}`, version, ref.Kind, ref.Name, uid)
}

// controls makes a reference one to a controller.
func controls(owner string) string {
	return strings.TrimSuffix(owner, "}") + `,"controller":true,"blockOwnerDeletion":true}`
}

// atMostPods is the invariant that there are never more active pods than so many.
func atMostPods(count int) func(*world.View) error {
	return func(v *world.View) error {
		if pods := v.Pods(); len(pods) > count {
			return fmt.Errorf("%d pods:\n%s", len(pods), pods)
		}
		return nil
	}
}
