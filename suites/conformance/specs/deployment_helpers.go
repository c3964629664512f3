package specs

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

// isComplete returns a matcher for a Deployment whose rollout is complete.
func isComplete() types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool { return d != nil && d.Complete() }, "a complete Deployment, and a status for the latest generation")
}

// deploymentCondition returns a matcher for a Deployment that has a condition with the given
// type, status and reason.
func deploymentCondition(kind, status, reason string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		if d == nil {
			return false
		}
		c := d.Condition(kind)
		return c.Status == status && c.Reason == reason
	}, "the condition %s=%q, reason %q", kind, status, reason)
}

// desiredReplicas returns a matcher for a list of ReplicaSets, oldest first. Their spec.replicas
// must be the given values.
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

// withRollingUpdate returns a function that sets maxSurge and maxUnavailable of a Deployment.
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

// withPods returns a function that changes the pod template of a Deployment.
func withPods(edit func(*corev1.PodTemplateSpec)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { edit(&d.Spec.Template) }
}

func withProgressDeadline(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To(seconds) }
}

// versionKey is the annotation that makes the pod templates of one Ginkgo spec different from each
// other.
const versionKey = "version"

// updateTemplate changes the pod template of a Deployment, which starts a rollout.
func updateTemplate(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, version string) {
	ginkgo.GinkgoHelper()
	n.Patch(ctx, ref, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, versionKey, version)
}

// stuckRollout creates a Deployment with available pods, and starts a rollout whose pods never
// become ready. It waits until spec.replicas is old for the old ReplicaSet and latest for the
// new one.
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

// setAllPodsReady makes all count pods of a Deployment ready, and returns them. The Deployment
// must have only one ReplicaSet, and its pods must be unschedulable.
func setAllPodsReady(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, count int) testenv.Pods {
	ginkgo.GinkgoHelper()
	set := onlyReplicaSet(ctx, n, ref)
	n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), scaledTo(int32(count)))
	active := waitActivePods(ctx, n, set.Ref, count)
	setPodsReady(ctx, n, time.Now(), active.Names()...)
	return active
}

// onlyReplicaSet waits until a Deployment has exactly one ReplicaSet, and returns the
// ReplicaSet.
func onlyReplicaSet(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref) *testenv.ReplicaOwner {
	ginkgo.GinkgoHelper()
	return n.Eventually(ctx, testenv.GetReplicaSets(ref), testenv.Satisfy(func(sets testenv.ReplicaSets) bool { return len(sets) == 1 }, "one ReplicaSet")).(testenv.ReplicaSets)[0]
}

// desiredAtMost returns an invariant: spec.replicas of all ReplicaSets of a Deployment add up to
// at most count.
func desiredAtMost(ref testenv.Ref, count int32) func(*testenv.View) error {
	return func(v *testenv.View) error {
		if sets := v.ReplicaSets().ControlledBy(ref); sets.Desired() > count {
			return fmt.Errorf("sum of spec.replicas is %d:\n%s", sets.Desired(), sets)
		}
		return nil
	}
}

// completeAt returns a matcher for a Deployment whose rollout is complete and that has the given
// revision.
func completeAt(revision string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		return d.Complete() && d.Annotations[revisionKey] == revision
	}, "revision %s, complete", revision)
}

// rolledBackTo returns a matcher for a Deployment after a rollback. The rollout is complete, the
// Deployment has the given revision, and it has no rollback annotation.
func rolledBackTo(revision string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		_, requested := d.Annotations[appsv1.DeprecatedRollbackTo]
		return !requested && d.Complete() && d.Annotations[revisionKey] == revision
	}, "revision %s, complete, and no rollback annotation", revision)
}
