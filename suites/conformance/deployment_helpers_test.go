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

// isComplete wants a Deployment whose pods are all of the latest template, and
// available.
func isComplete() types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool { return d != nil && d.Complete() }, "a Deployment that is complete, by the status of its latest generation")
}

// deploymentCondition wants a Deployment with a condition of that status and reason.
func deploymentCondition(kind, status, reason string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		if d == nil {
			return false
		}
		c := d.Condition(kind)
		return c.Status == status && c.Reason == reason
	}, "the condition %s=%q, reason %q", kind, status, reason)
}

// desiredReplicas wants sets that are to have so many pods each, the oldest first.
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
	}, "ReplicaSets of %v pods, the oldest first", replicas)
}

// withRollingUpdate sets how much may be too many, and how much too few, while pods are
// replaced.
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

// withPods changes the template of a Deployment's pods.
func withPods(edit func(*corev1.PodTemplateSpec)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { edit(&d.Spec.Template) }
}

func withProgressDeadline(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To(seconds) }
}

// versionKey is the annotation by which the specs' templates differ.
const versionKey = "version"

// updateTemplate gives a Deployment another template.
func updateTemplate(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, version string) {
	ginkgo.GinkgoHelper()
	n.Patch(ctx, ref, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, versionKey, version)
}

// stuckRollout makes a Deployment whose pods are all available, and rolls it out to pods
// that never are. It returns when so many pods of the old template and of the new
// are wanted, at which it stops.
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

// setAllPodsReady makes the held pods of a Deployment's one ReplicaSet ready.
func setAllPodsReady(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, count int) testenv.Pods {
	ginkgo.GinkgoHelper()
	set := onlyReplicaSet(ctx, n, ref)
	n.Eventually(ctx, testenv.GetReplicaOwner(set.Ref), scaledTo(int32(count)))
	made := waitActivePods(ctx, n, set.Ref, count)
	setPodsReady(ctx, n, time.Now(), made.Names()...)
	return made
}

// onlyReplicaSet is the one ReplicaSet of a Deployment.
func onlyReplicaSet(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref) *testenv.ReplicaOwner {
	ginkgo.GinkgoHelper()
	return n.Eventually(ctx, testenv.GetReplicaSets(ref), testenv.Satisfy(func(sets testenv.ReplicaSets) bool { return len(sets) == 1 }, "one ReplicaSet")).(testenv.ReplicaSets)[0]
}

// desiredAtMost is the invariant that the ReplicaSets of a Deployment together never
// want more pods than so many.
func desiredAtMost(ref testenv.Ref, count int32) func(*testenv.View) error {
	return func(v *testenv.View) error {
		if sets := v.ReplicaSets().ControlledBy(ref); sets.Desired() > count {
			return fmt.Errorf("%d pods wanted:\n%s", sets.Desired(), sets)
		}
		return nil
	}
}

// completeAt wants a Deployment that is complete and of that revision.
func completeAt(revision string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		return d.Complete() && d.Annotations[revisionKey] == revision
	}, "revision %s, complete", revision)
}

// rolledBackTo wants a Deployment that is complete, of that revision, and asks for no
// rollback any more.
func rolledBackTo(revision string) types.GomegaMatcher {
	return testenv.Satisfy(func(d *testenv.Deployment) bool {
		_, asks := d.Annotations[appsv1.DeprecatedRollbackTo]
		return !asks && d.Complete() && d.Annotations[revisionKey] == revision
	}, "revision %s, complete, and no rollback asked for", revision)
}
