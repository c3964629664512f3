package specs

import (
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// These Ginkgo specs test fields of a Deployment, and which ReplicaSets it controls.
var _ = ginkgo.Describe("deployment", func() {
	spec("Deployment/TestDeploymentSelectorImmutability", "the API server rejects a change of a Deployment's selector",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			err := n.TryPatch(ctx, d, `{"spec":{"selector":{"matchLabels":{"app":"else"}},"template":{"metadata":{"labels":{"app":"else"}}}}}`)
			gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("field is immutable")))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/TestPausedDeployment", "a paused Deployment rolls out no template until it is resumed",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1, func(d *appsv1.Deployment) { d.Spec.Paused = true }))
			n.Eventually(ctx, testenv.GetDeployment(d), deploymentCondition("Progressing", "Unknown", "DeploymentPaused"))
			n.Eventually(ctx, testenv.GetReplicaSets(d), desiredReplicas())
			n.Patch(ctx, d, `{"spec":{"paused":false}}`)
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())

			n.Patch(ctx, d, `{"spec":{"paused":true}}`)
			n.Eventually(ctx, testenv.GetDeployment(d), deploymentCondition("Progressing", "Unknown", "DeploymentPaused"))
			n.Always("there is at most 1 ReplicaSet", replicaSetsAtMost(d, 1))
			updateTemplate(ctx, n, d, "2")
			n.Eventually(ctx, testenv.GetDeployment(d), testenv.Satisfy(func(d *testenv.Deployment) bool { return d.Status.ObservedGeneration == d.Generation }, "a status for the latest generation"))
			n.Barrier(ctx)
			n.ClearInvariants()
			n.Patch(ctx, d, `{"spec":{"paused":false}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 1))
		})

	spec("Deployment/TestScalePausedDeployment", "a paused Deployment scales with pods of the template that it rolled out last",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			set := onlyReplicaSet(ctx, n, d)
			n.Patch(ctx, d, `{"spec":{"paused":true}}`)
			updateTemplate(ctx, n, d, "2")
			n.PutScale(ctx, d, 4)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set.Ref), allReady(4))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(4))
		})

	spec("Deployment/TestSpecReplicasChange", "a Deployment follows spec.replicas up, down and to zero",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			for _, replicas := range []int32{3, 1, 0, 2} {
				n.Patch(ctx, d, `{"spec":{"replicas":%d}}`, replicas)
				n.Eventually(ctx, testenv.GetReplicaSets(d), desiredReplicas(replicas))
				n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			}
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(onlyReplicaSet(ctx, n, d).Ref), allReady(2))
		})

	spec("Deployment/TestDeploymentScaleSubresource", "a Deployment follows its scale subresource",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.PatchSubresource(ctx, d, "scale", `{"spec":{"replicas":3}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(3))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})
	spec("Deployment/working scale subresource", "a Deployment follows an update of its scale subresource",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.PutScale(ctx, d, 2)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(2))
		})

	spec("Deployment/TestScaledRolloutDeployment", "a Deployment that is scaled up during a rollout scales old and new ReplicaSets proportionally, and then continues the rollout",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := stuckRollout(ctx, n, testenv.NewDeployment("web", 5, withRollingUpdate("2", "1")), 4, 3)
			n.Patch(ctx, d, `{"spec":{"replicas":15}}`)
			sets := n.Eventually(ctx, testenv.GetReplicaSets(d), desiredReplicas(10, 7)).(testenv.ReplicaSets)
			n.Always("the sum of spec.replicas is at most 17", desiredAtMost(d, 17))
			// The rollout continues when the new pods are ready.
			setPodsReady(ctx, n, time.Now(), waitActivePods(ctx, n, sets[1].Ref, 7).Names()...)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(sets[1].Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s.Desired > 7 }, "a new ReplicaSet with spec.replicas above 7"))
		})
	spec("Deployment/proportional scaling", "a Deployment that is scaled up during a stuck rollout scales old and new ReplicaSets proportionally",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := stuckRollout(ctx, n, testenv.NewDeployment("web", 10, withRollingUpdate("3", "2")), 8, 5)
			n.PutScale(ctx, d, 30)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(20, 13))
		})

	spec("Deployment/TestDeploymentAvailableCondition", "a Deployment reports Available after minReadySeconds, and copies minReadySeconds to its ReplicaSets",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 4, withPods(testenv.Unschedulable), func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 300 }, withRollingUpdate("1", "1")))
			n.Eventually(ctx, testenv.GetDeployment(d), deploymentCondition("Available", "False", "MinimumReplicasUnavailable"))
			setAllPodsReady(ctx, n, d, 4)
			set := onlyReplicaSet(ctx, n, d)
			n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), statusCounts(4, 4, 0))
			n.Eventually(ctx, testenv.GetDeployment(d), testenv.Satisfy(func(d *testenv.Deployment) bool {
				return d.Status.ReadyReplicas == 4 && d.Condition("Available").Status == "False"
			}, "4 ready pods that are not available"))
			n.Patch(ctx, d, `{"spec":{"minReadySeconds":0}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set.Ref), statusCounts(4, 4, 4))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), deploymentCondition("Available", "True", "MinimumReplicasAvailable"))
		})

	spec("Deployment/TestDeploymentHashCollision", "a Deployment increments collisionCount and uses another name if a ReplicaSet with another template has the name",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			taken := onlyReplicaSet(ctx, n, d)
			n.Patch(ctx, taken.Ref, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":7}}}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), testenv.Satisfy(func(d *testenv.Deployment) bool {
				return d.Status.CollisionCount != nil && *d.Status.CollisionCount == 1
			}, "one collision"))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 1))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/TestTerminatingReplicasDeploymentStatus", "the status of a Deployment counts terminating pods separately",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 3, withPods(testenv.WithFinalizer)))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.PutScale(ctx, d, 1)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeploymentWithPods(d), deploymentTerminatingCount(n, 1, 2))
		})

	spec("Deployment/TestOverlappingDeployments", "two Deployments with the same selector manage only the ReplicaSets that they created",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			label := map[string]string{"app": "web"}
			var refs []testenv.Ref
			for i, name := range []string{"one", "two"} {
				refs = append(refs, n.Create(ctx, testenv.NewDeployment(name, int32(i+1), func(d *appsv1.Deployment) {
					d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = label, label
					d.Spec.Template.Annotations = map[string]string{versionKey: name}
				})))
			}
			n.Eventually(ctx, testenv.GetDeployment(refs[0]), isComplete())
			n.Eventually(ctx, testenv.GetDeployment(refs[1]), isComplete())
			n.PutScale(ctx, refs[0], 3)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(refs[0]), desiredReplicas(3))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(refs[1]), desiredReplicas(2))
			n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(5))
		})

	spec("Deployment/TestGeneralReplicaSetAdoption", "a Deployment adopts its own ReplicaSet again after its controller reference is removed",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			set := onlyReplicaSet(ctx, n, d)
			n.Always("there is at most 1 ReplicaSet", replicaSetsAtMost(d, 1))
			for _, owners := range []string{`[` + ownerReference(ctx, n, d) + `]`, `[]`} {
				n.Patch(ctx, set.Ref, `{"metadata":{"ownerReferences":%s}}`, owners)
				n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s != nil && s.Controller() == d }, "a ReplicaSet controlled by %s", d))
			}
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/TestReplicaSetOrphaningAndAdoptionWhenLabelsChange", "a Deployment releases and replaces a ReplicaSet that no longer matches, and adopts it when it matches again",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			set := onlyReplicaSet(ctx, n, d)
			n.Patch(ctx, set.Ref, `{"metadata":{"labels":{"app":"elsewhere"}}}`)
			n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s != nil && s.Controller() == testenv.Ref{} }, "a ReplicaSet without controller"))
			n.Eventually(ctx, testenv.GetReplicaSets(d), testenv.Satisfy(func(sets testenv.ReplicaSets) bool {
				return len(sets) == 1 && sets[0].GetName() != set.GetName()
			}, "another ReplicaSet"))
			n.Patch(ctx, set.Ref, `{"metadata":{"labels":{"app":"web"}}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set.Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s.Controller() == d }, "a ReplicaSet controlled by %s", d))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), testenv.Satisfy(func(sets testenv.ReplicaSets) bool { return len(sets) == 2 && sets.Desired() == 1 }, "2 ReplicaSets with 1 replica in total"))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/ReplicaSet orphaning and adoption regarding controllerRef", "a Deployment adopts a ReplicaSet that a deleted Deployment orphaned, and keeps its pods",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			set := onlyReplicaSet(ctx, n, d)
			names := waitActivePods(ctx, n, set.Ref, 2).Names()
			n.Delete(ctx, d, metav1.DeletePropagationOrphan)
			n.Eventually(ctx, testenv.Exists(d), gomega.BeFalse())
			n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s != nil && s.Controller() == testenv.Ref{} }, "a ReplicaSet without controller"))
			n.Create(ctx, testenv.NewDeployment("web", 2))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(2))
			n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set.Ref), podNames(names...))
		})

	spec("Deployment/reaping cascades to ReplicaSets and pods", "the ReplicaSets and pods of a Deployment are deleted with it",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			set := onlyReplicaSet(ctx, n, d)
			n.Delete(ctx, d, "")
			n.EventuallyWithoutFaults(ctx, testenv.Exists(d), gomega.BeFalse())
			n.EventuallyWithoutFaults(ctx, testenv.Exists(set.Ref), gomega.BeFalse())
			n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(0))
		})

	spec("Deployment/lifecycle of a Deployment", "a Deployment follows its creation, patches, scales, updates and deletion",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.Patch(ctx, d, `{"metadata":{"labels":{"patched":"yes"}},"spec":{"replicas":1,"template":{"spec":{"terminationGracePeriodSeconds":2}}}}`)
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			var read appsv1.Deployment
			read.Name = d.Name
			n.Replace(ctx, &read, func() { read.Spec.Template.Annotations = map[string]string{versionKey: "3"} })
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.PutScale(ctx, d, 3)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 0, 3))
			n.DeleteAll(ctx, testenv.DeploymentKind, map[string]string{"patched": "yes"})
			n.EventuallyWithoutFaults(ctx, testenv.Exists(d), gomega.BeFalse())
		})

	spec("Deployment/validate Deployment Status endpoints", "a Deployment keeps status conditions that other clients set",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.PatchSubresource(ctx, d, "status", `{"status":{"conditions":[{"type":"StatusPatched","status":"True","reason":"E2E"}]}}`)
			waitDelivered(ctx, n, d)
			n.PutScale(ctx, d, 2)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), deploymentCondition("StatusPatched", "True", "E2E"))
		})

	spec("Deployment/statement 6", "a Deployment reports ReplicaSetCreateError when it cannot create a ReplicaSet, and continues when it can",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			few := createQuota(ctx, n, corev1.ResourceName("count/replicasets.apps"), 0, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "one"}.Build())
			d := n.Create(ctx, testenv.NewDeployment("web", 1))
			n.Eventually(ctx, testenv.GetDeployment(d), deploymentCondition("Progressing", "False", "ReplicaSetCreateError"))
			n.Eventually(ctx, testenv.GetEvents(d), eventWithPrefix("Warning ReplicaSetCreateError (deployment-controller): "))
			n.Delete(ctx, few, "")
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/statement 14", "a template that is used again gets the highest revision, and its ReplicaSet records its former revisions",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2, withRollingUpdate("1", "0")))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			first := onlyReplicaSet(ctx, n, d)
			updateTemplate(ctx, n, d, "2")
			n.Eventually(ctx, testenv.GetDeployment(d), completeAt("2"))
			n.Patch(ctx, d, `{"spec":{"template":{"metadata":{"annotations":null}}}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), completeAt("3"))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(first.Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
				has := s.GetAnnotations()
				return has[revisionKey] == "3" && has["deployment.kubernetes.io/revision-history"] == "1" &&
					has["deployment.kubernetes.io/desired-replicas"] == "2" && has["deployment.kubernetes.io/max-replicas"] == "3"
			}, "a ReplicaSet with revision 3, revision history 1, desired-replicas 2 and max-replicas 3"))
		})

	spec("Deployment/statement 18", "the rollback annotation with revision 0 rolls a Deployment back to the previous revision once",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d, first := deploymentAtRevision2(ctx, n)
			updateTemplate(ctx, n, d, "3")
			n.Eventually(ctx, testenv.GetDeployment(d), completeAt("3"))
			n.Patch(ctx, d, `{"metadata":{"annotations":{%q:"0"}}}`, appsv1.DeprecatedRollbackTo)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), rolledBackTo("4"))
			// The revision before the newest one is 2, so revision 1 stays scaled down.
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(first.Ref), allReady(0))
			n.EventuallyWithoutFaults(ctx, testenv.GetEvents(d), eventWithPrefix("Normal DeploymentRollback (deployment-controller): "))
		})
	spec("Deployment/statement 18", "the rollback annotation rolls a Deployment back to the given revision",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d, first := deploymentAtRevision2(ctx, n)
			n.Patch(ctx, d, `{"metadata":{"annotations":{%q:"1"}}}`, appsv1.DeprecatedRollbackTo)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), rolledBackTo("3"))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(first.Ref), allReady(1))
		})
	spec("Deployment/statement 18", "a Deployment emits an event for a rollback to a missing revision, and removes the annotation",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d, first := deploymentAtRevision2(ctx, n)
			n.Patch(ctx, d, `{"metadata":{"annotations":{%q:"7"}}}`, appsv1.DeprecatedRollbackTo)
			n.EventuallyWithoutFaults(ctx, testenv.GetEvents(d), eventWithPrefix("Warning DeploymentRollbackRevisionNotFound (deployment-controller): "))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), rolledBackTo("2"))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(first.Ref), allReady(0))
		})

	spec("Deployment/statement 19", "a Deployment copies minReadySeconds and its annotations to its ReplicaSet, except last-applied-configuration",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1, func(d *appsv1.Deployment) {
				d.Annotations = map[string]string{"note": "first", corev1.LastAppliedConfigAnnotation: "{}"}
			}))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.Patch(ctx, d, `{"metadata":{"annotations":{"note":"second"}},"spec":{"minReadySeconds":1}}`)
			set := onlyReplicaSet(ctx, n, d)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set.Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
				_, applied := s.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
				return s.GetAnnotations()["note"] == "second" && !applied && s.MinReadySeconds == 1
			}, "the annotation note=second, no last-applied-configuration, and minReadySeconds 1"))
		})
})

// deploymentAtRevision2 creates a Deployment and changes its pod template once. It returns the
// Deployment after the rollout, and the ReplicaSet of revision 1.
func deploymentAtRevision2(ctx ginkgo.SpecContext, n *testenv.Namespace) (testenv.Ref, *testenv.ReplicaOwner) {
	ginkgo.GinkgoHelper()
	d := n.Create(ctx, testenv.NewDeployment("web", 1))
	n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
	first := onlyReplicaSet(ctx, n, d)
	updateTemplate(ctx, n, d, "2")
	n.Eventually(ctx, testenv.GetDeployment(d), completeAt("2"))
	return d, first
}

// replicaSetsAtMost returns an invariant: the Deployment ref controls at most count ReplicaSets.
func replicaSetsAtMost(ref testenv.Ref, count int) func(*testenv.View) error {
	return func(v *testenv.View) error {
		if sets := v.ReplicaSets().ControlledBy(ref); len(sets) > count {
			return fmt.Errorf("%d ReplicaSets:\n%s", len(sets), sets)
		}
		return nil
	}
}
