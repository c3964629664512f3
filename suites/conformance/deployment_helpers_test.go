package conformance

import (
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// isComplete matches a Deployment if all its pods have the latest template and are
// available.
func isComplete() types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool { return d != nil && d.Complete() }, "a complete Deployment, and a status for the latest generation")
}

// deploymentCondition matches a Deployment with a condition of the given status and
// reason.
func deploymentCondition(kind, status, reason string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		if d == nil {
			return false
		}
		c := d.Condition(kind)
		return c.Status == status && c.Reason == reason
	}, "the condition %s=%q, reason %q", kind, status, reason)
}

// desiredReplicas matches ReplicaSets with the given spec.replicas, oldest first.
func desiredReplicas(replicas ...int32) types.GomegaMatcher {
	return testenv.Satisfy(func(sets testenv.ReplicaSets) bool {
		if len(sets) != len(replicas) {
			return false
		}
		for i, set := range sets {
			if set.Desired != replicas[i] {
				return false
			}
		}
		return true
	}, "ReplicaSets with spec.replicas %v, oldest first", replicas)
}

// withRollingUpdate sets maxSurge and maxUnavailable.
func withRollingUpdate(maxSurge, maxUnavailable string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		surge, unavailable := intstr.Parse(maxSurge), intstr.Parse(maxUnavailable)
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
		}
	}
}

func withRecreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

// withPods edits the pod template of a Deployment.
func withPods(edit func(*corev1.PodTemplateSpec)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { edit(&d.Spec.Template) }
}

func withProgressDeadline(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To(seconds) }
}

// versionKey is the annotation that distinguishes the pod templates of a spec.
const versionKey = "version"

// updateTemplate changes the pod template of a Deployment.
func updateTemplate(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, version string) {
	ginkgo.GinkgoHelper()
	n.Patch(ctx, ref, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, versionKey, version)
}

// stuckRollout creates a Deployment with available pods and starts a rollout. The new
// pods never become ready, so the rollout stops. stuckRollout waits until the old and
// the new ReplicaSet have the given spec.replicas.
func stuckRollout(ctx ginkgo.SpecContext, n *testenv.Namespace, d *appsv1.Deployment, old, latest int32) testenv.Ref {
	ginkgo.GinkgoHelper()
	testenv.Unschedulable(&d.Spec.Template)
	ref := n.Create(ctx, d)
	setAllPodsReady(ctx, n, ref, int(*d.Spec.Replicas))
	n.Eventually(ctx, testenv.GetDeployment(ref), isComplete())
	updateTemplate(ctx, n, ref, "2")
	n.Eventually(ctx, testenv.GetReplicaSets(ref), desiredReplicas(old, latest))
	return ref
}

// setAllPodsReady makes the unschedulable pods of a Deployment with one ReplicaSet
// ready.
func setAllPodsReady(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, count int) testenv.Pods {
	ginkgo.GinkgoHelper()
	set := onlyReplicaSet(ctx, n, ref)
	n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), scaledTo(int32(count)))
	active := waitActivePods(ctx, n, set.Ref, count)
	setPodsReady(ctx, n, time.Now(), active.Names()...)
	return active
}

// onlyReplicaSet returns the only ReplicaSet of a Deployment.
func onlyReplicaSet(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref) *testenv.ReplicaOwner {
	ginkgo.GinkgoHelper()
	return n.Eventually(ctx, testenv.GetReplicaSets(ref), testenv.Satisfy(func(sets testenv.ReplicaSets) bool { return len(sets) == 1 }, "one ReplicaSet")).(testenv.ReplicaSets)[0]
}

// desiredAtMost returns the invariant that the ReplicaSets of a Deployment have at most
// the given sum of spec.replicas.
func desiredAtMost(ref testenv.Ref, count int32) func(*testenv.View) error {
	return func(v *testenv.View) error {
		if sets := v.ReplicaSets().ControlledBy(ref); sets.Desired() > count {
			return fmt.Errorf("sum of spec.replicas is %d:\n%s", sets.Desired(), sets)
		}
		return nil
	}
}

// completeAt matches a complete Deployment with the given revision.
func completeAt(revision string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		return d.Complete() && d.Annotations[revisionKey] == revision
	}, "revision %s, complete", revision)
}

// rolledBackTo matches a complete Deployment with the given revision and without the
// rollback annotation.
func rolledBackTo(revision string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		_, requested := d.Annotations[appsv1.DeprecatedRollbackTo]
		return !requested && d.Complete() && d.Annotations[revisionKey] == revision
	}, "revision %s, complete, and no rollback annotation", revision)
}
