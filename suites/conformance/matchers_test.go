package conformance

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

// replicaOwnerKinds are the kinds that keep so many pods, by the same rules.
var replicaOwnerKinds = []string{testenv.ReplicaSetKind, testenv.ReplicationControllerKind}

// forEachReplicaOwner makes the specs of both kinds.
func forEachReplicaOwner(specs func(kind string)) {
	for _, kind := range replicaOwnerKinds {
		specs(kind)
	}
}

// scaledTo wants a set that says of its latest generation that it has so many pods.
func scaledTo(count int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.ObservedGeneration == s.GetGeneration() && s.Desired == count && s.Replicas == count
	}, "%d replicas wanted and there, by the status of the latest generation", count)
}

// allReady wants a set whose pods are all there and ready.
func allReady(count int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.ObservedGeneration == s.GetGeneration() && s.Replicas == count && s.Ready == count
	}, "%d replicas, all ready, by the status of the latest generation", count)
}

// podCount wants so many pods.
func podCount(count int) types.GomegaMatcher {
	return testenv.Satisfy(func(pods testenv.Pods) bool { return len(pods) == count }, "%d pods", count)
}

// podNames wants pods of just these names.
func podNames(names ...string) types.GomegaMatcher {
	want := slices.Sorted(slices.Values(names))
	return testenv.Satisfy(func(pods testenv.Pods) bool { return slices.Equal(pods.Names(), want) }, "just the pods %v", want)
}

// controlledBy wants a pod that this object controls; the zero value is nobody.
func controlledBy(ref testenv.Ref) types.GomegaMatcher {
	return testenv.Satisfy(func(pod testenv.Pod) bool { return pod.Pod != nil && pod.Controller() == ref }, "a pod that %q controls", ref)
}

// ownerCondition wants a set with a condition of that status and reason; with none if
// the status is empty.
func ownerCondition(kind, status, reason string) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		c := testenv.Condition{}
		if s != nil {
			c = s.Condition(kind)
		}
		return s != nil && c.Status == status && c.Reason == reason
	}, "the condition %s=%q, reason %q", kind, status, reason)
}

// eventWithPrefix wants an event that begins so: "Normal SuccessfulCreate (replicaset-controller)".
func eventWithPrefix(beginning string) types.GomegaMatcher {
	return testenv.Satisfy(func(events []string) bool {
		return slices.ContainsFunc(events, func(event string) bool { return strings.HasPrefix(event, beginning) })
	}, "an event %q", beginning)
}

// waitActivePods waits until a set has so many active pods, and its status says so, and returns
// them. A create whose answer was lost may have made one more than was asked for: who
// has counted as many as there are has none left to delete.
func waitActivePods(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref, count int) testenv.Pods {
	ginkgo.GinkgoHelper()
	found := n.Eventually(ctx, testenv.GetReplicaOwnerWithPods(ref), testenv.Satisfy(func(s testenv.WithPods[*testenv.ReplicaOwner]) bool {
		return s.Object != nil && int(s.Object.Replicas) == count && len(s.Pods.Active()) == count
	}, "%d pods, and a status that counts them", count))
	return found.(testenv.WithPods[*testenv.ReplicaOwner]).Pods.Active()
}

// activePodsAtMost is the invariant that an object never has more active pods than so many.
func activePodsAtMost(ref testenv.Ref, count int) func(*testenv.View) error {
	return func(v *testenv.View) error {
		if pods := v.Pods().ControlledBy(ref).Active(); len(pods) > count {
			return fmt.Errorf("%d active pods of %s:\n%s", len(pods), ref, pods)
		}
		return nil
	}
}

// setPodsReady gives held pods the status of pods that run and have been ready since then.
func setPodsReady(ctx ginkgo.SpecContext, n *testenv.Namespace, since time.Time, names ...string) {
	ginkgo.GinkgoHelper()
	for _, name := range names {
		setPodRunning(ctx, n, name, true, since, 0)
	}
}

// setPodRunning gives a held pod the status of one that runs and has been ready, or not,
// since then, to the second, with so many restarts.
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

// waitDelivered waits until the subject has been told of objects as they are now.
func waitDelivered(ctx ginkgo.SpecContext, n *testenv.Namespace, refs ...testenv.Ref) {
	ginkgo.GinkgoHelper()
	for _, ref := range refs {
		n.Eventually(ctx, n.LatestDelivered(ref), testenv.Satisfy(func(told bool) bool { return told }, "the subject to know it as it is"))
	}
}

// removeFinalizer removes the finalizer that has an object stay.
func removeFinalizer(ctx ginkgo.SpecContext, n *testenv.Namespace, ref testenv.Ref) {
	ginkgo.GinkgoHelper()
	n.Patch(ctx, ref, `{"metadata":{"finalizers":null}}`)
}

// removePodFinalizers removes it from every pod that is there: with faults there may be more
// than were asked for.
func removePodFinalizers(ctx ginkgo.SpecContext, n *testenv.Namespace) {
	ginkgo.GinkgoHelper()
	held := n.Eventually(ctx, testenv.GetPods(), testenv.Satisfy(func(pods testenv.Pods) bool { return len(pods) > 0 }, "some pods")).(testenv.Pods)
	for _, name := range held.Names() {
		removeFinalizer(ctx, n, podRef(name))
	}
}

// containerRuns is whether the one container of a pod runs.
func containerRuns(pod testenv.Pod) bool {
	containers := pod.Status.ContainerStatuses
	return len(containers) == 1 && containers[0].State.Running != nil
}

// statusCounts wants a set's status to count so many pods, of them so many ready, and of
// those so many available.
func statusCounts(replicas, ready, available int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.Replicas == replicas && s.Ready == ready && s.Available == available
	}, "%d replicas, %d ready, %d available", replicas, ready, available)
}

// fullyLabeled wants a set's status to count so many pods, of them so many fully
// labelled.
func fullyLabeled(replicas, fully int32) types.GomegaMatcher {
	return testenv.Satisfy(func(s *testenv.ReplicaOwner) bool {
		return s != nil && s.Replicas == replicas && s.FullyLabeled == fully
	}, "%d replicas, %d fully labelled", replicas, fully)
}

// terminatingCount wants a set's status to count so many pods, and apart from them all that
// are terminating, which are so many, or with a profile of faults maybe more.
func terminatingCount(n *testenv.Namespace, replicas int32, leaving int) types.GomegaMatcher {
	return testenv.Satisfy(func(s testenv.WithPods[*testenv.ReplicaOwner]) bool {
		return s.Object != nil && s.Object.Replicas == replicas && countsTerminating(n, s.Object.Terminating, s.Pods, leaving)
	}, terminatingText, replicas, leaving)
}

// deploymentTerminatingCount wants that of a Deployment.
func deploymentTerminatingCount(n *testenv.Namespace, replicas int32, leaving int) types.GomegaMatcher {
	return testenv.Satisfy(func(d testenv.WithPods[*testenv.Deployment]) bool {
		return d.Object != nil && d.Object.Status.Replicas == replicas && countsTerminating(n, d.Object.Status.TerminatingReplicas, d.Pods, leaving)
	}, terminatingText, replicas, leaving)
}

const terminatingText = "%d replicas, and apart from them all that are terminating, %d or with faults more"

// countsTerminating is whether a status counts those of the pods that are terminating and
// have not ended, which are so many, or with a profile of faults maybe more.
func countsTerminating(n *testenv.Namespace, counted *int32, pods testenv.Pods, count int) bool {
	leaving := len(pods.Filter(func(p testenv.Pod) bool { return p.Terminating() && !p.Terminal() }))
	return counted != nil && int(*counted) == leaving && (leaving == count || n.HasProfile() && leaving > count)
}

// createQuota allows so many of a resource in the namespace, and returns when that is in
// force. Such a thing is one of the resource.
func createQuota(ctx ginkgo.SpecContext, n *testenv.Namespace, resource corev1.ResourceName, count int64, such testenv.Object) testenv.Ref {
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
	// What admits new objects has a watch of quotas of its own, which may be behind; by
	// being refused one knows that it is not. What it learns of more late does no harm.
	gomega.Eventually(ctx, func() error { return n.WouldCreate(ctx, such) }).WithTimeout(time.Minute).
		Should(gomega.MatchError(apierrors.IsForbidden, "the quota's refusal"))
	n.Patch(ctx, ref, `{"spec":{"hard":{%q:"%d"}}}`, resource, count)
	n.Eventually(ctx, testenv.GetQuota(ref.Name), allowed(count))
	return ref
}
