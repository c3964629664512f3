package specs

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// These Ginkgo specs test the rollouts of a Deployment.
var _ = ginkgo.Describe("rollout", func() {
	spec("Deployment/TestNewDeployment", "a Deployment creates a ReplicaSet with the hash of its template in name and labels, and with revision 1",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			set := onlyReplicaSet(ctx, n, d)
			gomega.Expect(set.Hash()).NotTo(gomega.BeEmpty())
			gomega.Expect(set.GetName()).To(gomega.Equal("web-" + set.Hash()))
			gomega.Expect(set.Selector).To(gomega.HaveKeyWithValue(appsv1.DefaultDeploymentUniqueLabelKey, set.Hash()))
			for _, pod := range waitActivePods(ctx, n, set.Ref, 2) {
				gomega.Expect(pod.Labels).To(gomega.HaveKeyWithValue(appsv1.DefaultDeploymentUniqueLabelKey, set.Hash()))
			}
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), testenv.Satisfy(func(d *testenv.Deployment) bool { return d.Annotations[revisionKey] == "1" }, "a Deployment of revision 1"))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(set.Ref), testenv.Satisfy(func(s *testenv.ReplicaOwner) bool { return s.GetAnnotations()[revisionKey] == "1" }, "a ReplicaSet of revision 1"))
			n.EventuallyWithoutFaults(ctx, testenv.GetEvents(d), eventWithPrefix(fmt.Sprintf("Normal ScalingReplicaSet (deployment-controller): Scaled up replica set %s from 0 to 2", set.GetName())))
		})

	spec("Deployment/TestDeploymentRollingUpdate", "a rolling update replaces every pod and never requests more than replicas + maxSurge",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 4, withRollingUpdate("1", "1")))
			n.Always("the sum of spec.replicas is at most 5", desiredAtMost(d, 5))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			first := onlyReplicaSet(ctx, n, d)
			updateTemplate(ctx, n, d, "2")
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.Eventually(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 4))
			n.Patch(ctx, d, `{"spec":{"template":{"metadata":{"annotations":null}}}}`) // back to the first template
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(4, 0))
			// The Deployment must use the first ReplicaSet again, not create another one.
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(first.Ref), allReady(4))
		})

	spec("Deployment/RollingUpdateDeployment deletes old pods and creates new ones", "a Deployment adopts an existing ReplicaSet, rolls out from it, and continues its revision numbers",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			old := testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "old", Replicas: 1, Labels: map[string]string{"app": "web"}}.Build()
			old.SetLabels(map[string]string{"app": "web"})
			old.SetAnnotations(map[string]string{revisionKey: "41"})
			set := n.Create(ctx, old)
			n.Eventually(ctx, testenv.GetReplicaOwner(set), allReady(1))
			d := n.Create(ctx, testenv.NewDeployment("web", 1, withPods(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{versionKey: "2"} })))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 1))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), testenv.Satisfy(func(d *testenv.Deployment) bool { return d.Annotations[revisionKey] == "42" }, "a Deployment of revision 42"))
		})

	spec("Deployment/RecreateDeployment deletes old pods and creates new ones", "a Recreate Deployment never has pods of the old and the new template at the same time",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2, withRecreate, withPods(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{versionKey: "1"} })))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.Always("all pods have the same template", podsOfOneTemplate)
			updateTemplate(ctx, n, d, "2")
			n.Eventually(ctx, testenv.GetPods(), testenv.Satisfy(func(all testenv.Pods) bool {
				return len(all) == 2 && all[0].Annotations[versionKey] == "2" && all[1].Annotations[versionKey] == "2"
			}, "2 pods of the new template"))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/TestRecreateDeploymentForPodReplacement", "a Recreate Deployment waits until its old pods are gone, not only terminating",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2, withRecreate, withPods(testenv.UnschedulableWithFinalizer)))
			setAllPodsReady(ctx, n, d, 2)
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.Always("all pods have the same template", podsOfOneTemplate)
			updateTemplate(ctx, n, d, "2")
			n.Eventually(ctx, testenv.GetPods(), testenv.Satisfy(func(all testenv.Pods) bool {
				return len(all.Filter(testenv.Pod.Terminating)) == 2
			}, "2 terminating pods"))
			n.Barrier(ctx)
			removePodFinalizers(ctx, n)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 2))
		})

	spec("Deployment/TestRecreateDeploymentForPodReplacement", "a Recreate Deployment does not wait for old pods that have failed",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2, withRecreate, withPods(testenv.Unschedulable)))
			old := setAllPodsReady(ctx, n, d, 2)
			n.PatchSubresource(ctx, podRef(old[0].Name), "status", `{"status":{"phase":"Failed","conditions":[{"type":"Ready","status":"False"}]}}`)
			n.Eventually(ctx, testenv.GetPods(), podCount(3)) // the failed pod, the other pod and a replacement
			updateTemplate(ctx, n, d, "2")
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 2))
			n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(3))
		})

	spec("Deployment/TestRollingUpdateAndProportionalScalingForDeploymentPodReplacement", "a rolling update continues while old pods are terminating",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 2, withRollingUpdate("1", "0"), withPods(testenv.WithFinalizer)))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			updateTemplate(ctx, n, d, "2")
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 2))
			n.EventuallyWithoutFaults(ctx, testenv.GetPods(), testenv.Satisfy(func(all testenv.Pods) bool {
				return len(all.Filter(testenv.Pod.Terminating)) >= 2 && len(all.Active()) == 2
			}, "2 active pods and 2 terminating pods"))
		})

	spec("Deployment/TestRollingUpdateAndProportionalScalingForDeploymentPodReplacement", "a Deployment that is scaled during a rollout does not count terminating pods",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := stuckRollout(ctx, n, testenv.NewDeployment("web", 5, withRollingUpdate("2", "1"), withPods(testenv.WithFinalizer)), 4, 3)
			n.PutScale(ctx, d, 15)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(10, 7))
		})

	spec("Deployment/rollover", "a Deployment abandons a rollout when its template changes again, and rolls out the last template",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := stuckRollout(ctx, n, testenv.NewDeployment("web", 3, withRollingUpdate("1", "0")), 3, 1)
			n.Always("the sum of spec.replicas is at most 4", desiredAtMost(d, 4))
			n.Patch(ctx, d, `{"spec":{"template":{"metadata":{"annotations":{%q:"3"}},"spec":{"nodeSelector":null}}}}`, versionKey)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 0, 3))
		})

	spec("Deployment/iterative rollouts eventually progress", "a Deployment that changes repeatedly during its rollouts completes eventually",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			random := rand.New(rand.NewPCG(uint64(ginkgo.GinkgoRandomSeed()), 1))
			d := n.Create(ctx, testenv.NewDeployment("web", 4, withRollingUpdate("50%", "25%")))
			set := onlyReplicaSet(ctx, n, d)
			n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), scaledTo(4))
			for i := range 12 {
				switch random.IntN(4) {
				case 0:
					n.Patch(ctx, d, `{"spec":{"replicas":%d}}`, 2+random.IntN(5))
				case 1:
					n.Patch(ctx, d, `{"spec":{"paused":%t}}`, random.IntN(2) == 0)
				case 2:
					n.DeleteAll(ctx, testenv.PodKind, map[string]string{"app": "web"})
				default:
					updateTemplate(ctx, n, d, fmt.Sprint(i))
				}
				waitDelivered(ctx, n, d)
			}
			n.Patch(ctx, d, `{"spec":{"paused":false}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/statement 4", "a Deployment uses the oldest existing ReplicaSet with its template",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			for _, name := range []string{"a-first", "b-second"} {
				set := testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: name, Labels: map[string]string{"app": "web"}}.Build()
				set.SetLabels(map[string]string{"app": "web"})
				n.Eventually(ctx, testenv.GetReplicaOwner(n.Create(ctx, set)), scaledTo(0))
			}
			d := n.Create(ctx, testenv.NewDeployment("web", 2))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(2, 0))
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaOwner(testenv.Ref{Kind: testenv.ReplicaSetKind, Name: "a-first"}), allReady(2))
		})

	spec("Deployment/statement 9", "a rollout first scales down old pods that are not ready",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 4, withRollingUpdate("1", "1"), withPods(testenv.Unschedulable)))
			set := onlyReplicaSet(ctx, n, d)
			ready := waitActivePods(ctx, n, set.Ref, 4).Names()[:3]
			setPodsReady(ctx, n, time.Now(), ready...)
			n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), statusCounts(4, 3, 3))
			n.Always("the ready pods exist", func(v *testenv.View) error {
				for _, name := range ready {
					if !v.Has(podRef(name)) {
						return fmt.Errorf("pod %s does not exist", name)
					}
				}
				return nil
			})
			updateTemplate(ctx, n, d, "2")
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(3, 2))
			n.EventuallyWithoutFaults(ctx, testenv.GetActivePods(set.Ref), podNames(ready...))
		})

	spec("Deployment/statement 8", "maxSurge of 25 % is rounded up and maxUnavailable of 25 % is rounded down",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := testenv.NewDeployment("web", 10, withRollingUpdate("25%", "25%"))
			n.Always("the sum of spec.replicas is at most 13", desiredAtMost(testenv.RefOf(d), 13))
			stuckRollout(ctx, n, d, 8, 5)
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(testenv.RefOf(d)), desiredReplicas(8, 5))
		})
	spec("Deployment/statement 8", "maxUnavailable is 1 if maxSurge and maxUnavailable both resolve to 0",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1, withRollingUpdate("0", "1%")))
			n.Always("the sum of spec.replicas is at most 1", desiredAtMost(d, 1))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			updateTemplate(ctx, n, d, "2")
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 1))
		})
	spec("Deployment/statement 8", "maxUnavailable is limited to the number of replicas",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := testenv.NewDeployment("web", 2, withRollingUpdate("0", "5"))
			n.Always("the sum of spec.replicas is at most 2", desiredAtMost(testenv.RefOf(d), 2))
			stuckRollout(ctx, n, d, 0, 2)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(testenv.RefOf(d)), testenv.Satisfy(func(d *testenv.Deployment) bool { return d.Status.AvailableReplicas == 0 }, "no available pods"))
		})

	spec("Deployment/TestFailedDeployment", "a Deployment reports ProgressDeadlineExceeded, and reports progress again when the rollout continues",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			begun := time.Now()
			d := n.Create(ctx, testenv.NewDeployment("web", 1, withProgressDeadline(5), withPods(testenv.Unschedulable)))
			n.Eventually(ctx, testenv.GetDeployment(d), deploymentCondition("Progressing", "False", "ProgressDeadlineExceeded"))
			// API timestamps have whole seconds.
			gomega.Expect(time.Since(begun)).To(gomega.BeNumerically(">", 4*time.Second), "time until the condition")
			setAllPodsReady(ctx, n, d, 1)
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), deploymentCondition("Progressing", "True", "NewReplicaSetAvailable"))
			n.EventuallyWithoutFaults(ctx, testenv.GetDeployment(d), isComplete())
		})

	spec("Deployment/delete old replica sets", "a complete Deployment keeps at most revisionHistoryLimit old ReplicaSets, and deletes the oldest",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			d := n.Create(ctx, testenv.NewDeployment("web", 1, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](1) }))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			first := onlyReplicaSet(ctx, n, d)
			for _, version := range []string{"2", "3"} {
				updateTemplate(ctx, n, d, version)
				n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			}
			n.EventuallyWithoutFaults(ctx, testenv.Exists(first.Ref), gomega.BeFalse())
			n.EventuallyWithoutFaults(ctx, testenv.GetReplicaSets(d), desiredReplicas(0, 1))
		})
})

// revisionKey is the annotation that contains the revision number of a ReplicaSet or Deployment.
const revisionKey = "deployment.kubernetes.io/revision"

// podsOfOneTemplate is an invariant: all pods that have not failed or succeeded have the same
// template.
func podsOfOneTemplate(v *testenv.View) error {
	alive := v.Pods().Filter(func(p testenv.Pod) bool { return !p.Terminal() })
	for _, pod := range alive {
		if pod.Annotations[versionKey] != alive[0].Annotations[versionKey] {
			return fmt.Errorf("pods of two templates:\n%s", alive)
		}
	}
	return nil
}
