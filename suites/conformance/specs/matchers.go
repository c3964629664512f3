package specs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// replicaOwnerKinds are the two kinds whose controllers maintain a number of pods. The same
// rules apply to both.
var replicaOwnerKinds = []string{testenv.ReplicaSetKind, testenv.ReplicationControllerKind}

// forEachReplicaOwner calls specs twice: for ReplicaSet and for ReplicationController.
func forEachReplicaOwner(specs func(kind string)) {
	for _, kind := range replicaOwnerKinds {
		specs(kind)
	}
}

// scaledTo returns a matcher for a ReplicaSet or ReplicationController whose spec.replicas and
// status.replicas are count. The status must be for the latest generation.
func scaledTo(count int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.ObservedGeneration == s.GetGeneration() && s.Desired == count && s.Replicas == count
	}, "spec.replicas and status.replicas of %d, and a status for the latest generation", count)
}

// allReady returns a matcher for a ReplicaSet or ReplicationController whose status counts count
// replicas, all of them ready. The status must be for the latest generation.
func allReady(count int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.ObservedGeneration == s.GetGeneration() && s.Replicas == count && s.Ready == count
	}, "%d replicas, all ready, and a status for the latest generation", count)
}

// podCount returns a matcher for a list of count pods.
func podCount(count int) types.GomegaMatcher {
	return testenv.Satisfy(func(pods testenv.Pods) bool { return len(pods) == count }, "%d pods", count)
}

// podNames returns a matcher for a list of pods with exactly the given names.
func podNames(names ...string) types.GomegaMatcher {
	want := slices.Sorted(slices.Values(names))
	return testenv.Satisfy(func(pods testenv.Pods) bool { return slices.Equal(pods.Names(), want) }, "exactly the pods %v", want)
}

// controlledBy returns a matcher for a pod that the object ref controls. For the zero Ref, the
// pod must have no controller.
func controlledBy(ref testenv.Ref) types.GomegaMatcher {
	return testenv.Satisfy(func(pod testenv.Pod) bool { return pod.Pod != nil && pod.Controller() == ref }, "a pod controlled by %q", ref)
}

// ownerCondition returns a matcher for the conditions of a ReplicaSet or ReplicationController.
// It must have a condition with the given type, status and reason. If status is "", it must not
// have the condition.
func ownerCondition(kind, status, reason string) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		c := testenv.Condition{}
		if s != nil {
			c = s.Condition(kind)
		}
		return s != nil && c.Status == status && c.Reason == reason
	}, "the condition %s=%q, reason %q", kind, status, reason)
}

// eventWithPrefix returns a matcher for a list of events, as text. At least one of them must
// have the prefix. An example is "Normal SuccessfulCreate (replicaset-controller)".
func eventWithPrefix(beginning string) types.GomegaMatcher {
	return testenv.Satisfy(func(events []string) bool {
		return slices.ContainsFunc(events, func(event string) bool { return strings.HasPrefix(event, beginning) })
	}, "an event %q", beginning)
}

// waitActivePods waits until an object has count active pods and its status has this count too.
// It returns these pods.
//
// A create with a lost response may add a surplus pod. Once the status has the right count, the
// controller has deleted the surplus pod.
func waitActivePods(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, count int) testenv.Pods {
	ginkgo.GinkgoHelper()
	found := n.Eventually(ctx, testenv.GetReplicaOwnerWithPods(ref), testenv.Satisfy(func(s testenv.WithPods[*testenv.ReplicaOwner]) bool {
		return s.Object != nil && int(s.Object.Replicas) == count && len(s.Pods.Active()) == count
	}, "%d active pods, and a status with this count", count))
	return found.(testenv.WithPods[*testenv.ReplicaOwner]).Pods.Active()
}

// activePodsAtMost returns an invariant: the object ref controls at most count active pods.
func activePodsAtMost(ref testenv.Ref, count int) func(*testenv.View) error {
	return func(v *testenv.View) error {
		if pods := v.Pods().ControlledBy(ref).Active(); len(pods) > count {
			return fmt.Errorf("%d active pods of %s:\n%s", len(pods), ref, pods)
		}
		return nil
	}
}

// setPodsReady writes the status of running pods to the given unschedulable pods. According to
// this status, they became ready at the time since.
func setPodsReady(ctx ginkgo.SpecContext, n *testenv.Namespace, since time.Time, names ...string) {
	ginkgo.GinkgoHelper()
	for _, name := range names {
		setPodRunning(ctx, n, name, true, since, 0)
	}
}

// setPodRunning writes the status of a running pod to an unschedulable pod. The argument since
// is the time, in whole seconds, at which the readiness last changed.
func setPodRunning(ctx ginkgo.SpecContext, n *testenv.Namespace, name string, ready bool, since time.Time, restarts int) {
	ginkgo.GinkgoHelper()
	status := "False"
	if ready {
		status = "True"
	}
	n.PatchSubresource(ctx, podRef(name), "status", `{"status":{"phase":"Running",
		"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}],
		"containerStatuses":[{"name":"pause","image":"pause","imageID":"","ready":%t,"restartCount":%d}]}}`,
		status, since.UTC().Format(time.RFC3339), ready, restarts)
}

func podRef(name string) testenv.Ref { return testenv.Ref{Kind: testenv.PodKind, Name: name} }

// waitDelivered waits until the tested program's watches have delivered the current version of
// each object.
func waitDelivered(ctx ginkgo.SpecContext, n *testenv.Namespace, refs ...testenv.Ref) {
	ginkgo.GinkgoHelper()
	for _, ref := range refs {
		n.Eventually(ctx, n.LatestDelivered(ref), testenv.Satisfy(func(delivered bool) bool { return delivered }, "the current version delivered to the subject"))
	}
}

// removeFinalizer removes all finalizers of an object.
func removeFinalizer(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref) {
	ginkgo.GinkgoHelper()
	n.Patch(ctx, ref, `{"metadata":{"finalizers":null}}`)
}

// removePodFinalizers removes the finalizers of all existing pods. The Ginkgo spec may expect
// fewer pods, because faults may cause surplus pods.
func removePodFinalizers(ctx ginkgo.SpecContext, n *testenv.Namespace) {
	ginkgo.GinkgoHelper()
	existing := n.Eventually(ctx, testenv.GetPods(), testenv.Satisfy(func(pods testenv.Pods) bool { return len(pods) > 0 }, "some pods")).(testenv.Pods)
	for _, name := range existing.Names() {
		removeFinalizer(ctx, n, podRef(name))
	}
}

// containerRuns reports whether the only container of a pod is running.
func containerRuns(pod testenv.Pod) bool {
	containers := pod.Status.ContainerStatuses
	return len(containers) == 1 && containers[0].State.Running != nil
}

// statusCounts returns a matcher for the status of a ReplicaSet or ReplicationController. It
// must contain the given numbers of pods.
func statusCounts(replicas, ready, available int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.Replicas == replicas && s.Ready == ready && s.Available == available
	}, "%d replicas, %d ready, %d available", replicas, ready, available)
}

// fullyLabeled returns a matcher for the status of a ReplicaSet or ReplicationController. It
// must contain the given replicas and fullyLabeledReplicas.
func fullyLabeled(replicas, fully int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.Replicas == replicas && s.FullyLabeled == fully
	}, "%d replicas, %d fully labeled", replicas, fully)
}

// terminatingCount returns a matcher for a ReplicaSet and its pods. status.replicas must be the
// given number, and status.terminatingReplicas must be the number of terminating pods. This number
// must be want. With a fault profile, it may be larger. The matcher never matches a
// ReplicationController, because its status has no such field.
func terminatingCount(n *testenv.Namespace, replicas int32, want int) types.GomegaMatcher {
	return testenv.Satisfy(func(s testenv.WithPods[*testenv.ReplicaOwner]) bool {
		return s.Object != nil && s.Object.Replicas == replicas && countsTerminating(n, s.Object.Terminating, s.Pods, want)
	}, terminatingText, replicas, want)
}

// deploymentTerminatingCount returns the same matcher as terminatingCount, for a Deployment and
// its pods.
func deploymentTerminatingCount(n *testenv.Namespace, replicas int32, want int) types.GomegaMatcher {
	return testenv.Satisfy(func(d testenv.WithPods[*testenv.Deployment]) bool {
		return d.Object != nil && d.Object.Status.Replicas == replicas && countsTerminating(n, d.Object.Status.TerminatingReplicas, d.Pods, want)
	}, terminatingText, replicas, want)
}

const terminatingText = "%d replicas, and a separate count of all terminating pods, which are %d or, with faults, more"

// countsTerminating reports whether counted is the number of terminating pods that have not
// failed or succeeded. This number must be want. With a fault profile, it may be larger.
func countsTerminating(n *testenv.Namespace, counted *int32, pods testenv.Pods, want int) bool {
	terminating := len(pods.Filter(func(p testenv.Pod) bool { return p.Terminating() && !p.Terminal() }))
	return counted != nil && int(*counted) == terminating && (terminating == want || n.HasProfile() && terminating > want)
}

// createQuota creates a quota that limits a resource in the namespace to count. First, the limit
// is 0. When the API server rejects a dry-run create of example, createQuota raises the limit to
// count.
func createQuota(ctx ginkgo.SpecContext, n *testenv.Namespace, resource corev1.ResourceName, count int64, example testenv.Object) testenv.Ref {
	ginkgo.GinkgoHelper()
	ref := n.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{resource: apiresource.MustParse("0")}},
	})
	allowed := func(count int64) types.GomegaMatcher {
		return testenv.Satisfy(func(q *corev1.ResourceQuota) bool {
			if q == nil {
				return false
			}
			hard, known := q.Status.Hard[resource]
			return known && hard.Value() == count
		}, "a quota that allows %d", count)
	}
	n.Eventually(ctx, testenv.GetQuota(ref.Name), allowed(0))
	// The quota admission plugin has its own watch of quotas, which may lag behind. Once the
	// plugin rejects a dry run, it knows the quota. It may learn the higher limit late, which
	// does no harm.
	gomega.Eventually(ctx, func() error { return n.WouldCreate(ctx, example) }).WithTimeout(time.Minute).
		Should(gomega.MatchError(apierrors.IsForbidden, "a rejection by the quota"))
	n.Patch(ctx, ref, `{"spec":{"hard":{%q:"%d"}}}`, resource, count)
	n.Eventually(ctx, testenv.GetQuota(ref.Name), allowed(count))
	return ref
}
