package replicaset

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// rank is the position of a pod in the deletion order. compare compares the fields in
// turn; the pod with the lower rank is deleted first. Each pod gets its rank once,
// before the sort, so that the order is total. Upstream compares pods pairwise, and
// then the order can contain cycles.
type rank struct {
	assigned    int   // 0 if not assigned to a node
	phase       int   // 0 Pending, 1 Unknown, 2 Running
	ready       int   // 0 if not ready
	cost        int32 // annotation pod-deletion-cost
	relatedPods int   // negated: pods on nodes with more related pods go first
	readyAge    int   // logAge since the pod became ready; 0 if it is not ready
	restarts    int32 // negated: pods with more restarts go first
	sidecars    int32 // negated restarts of sidecars
	age         int   // logAge since the pod's creation
	uid         string
}

func (r rank) compare(other rank) int {
	return cmp.Or(
		cmp.Compare(r.assigned, other.assigned),
		cmp.Compare(r.phase, other.phase),
		cmp.Compare(r.ready, other.ready),
		cmp.Compare(r.cost, other.cost),
		cmp.Compare(r.relatedPods, other.relatedPods),
		cmp.Compare(r.readyAge, other.readyAge),
		cmp.Compare(r.restarts, other.restarts),
		cmp.Compare(r.sidecars, other.sidecars),
		cmp.Compare(r.age, other.age),
		cmp.Compare(r.uid, other.uid),
	)
}

// rankOf ranks a pod whose node runs relatedPods active pods of the same owner or its
// siblings.
func rankOf(pod *corev1.Pod, relatedPods int, now time.Time) rank {
	r := rank{
		phase:       phaseOrder[pod.Status.Phase],
		cost:        deletionCost(pod),
		relatedPods: -relatedPods,
		age:         logAge(pod.CreationTimestamp.Time, now),
		uid:         string(pod.UID),
	}
	if pod.Spec.NodeName != "" {
		r.assigned = 1
	}
	if since, ready := podutil.Ready(pod); ready {
		r.ready = 1
		r.readyAge = logAge(since, now)
	}
	containers, sidecars := podutil.Restarts(pod)
	r.restarts, r.sidecars = -containers, -sidecars
	return r
}

var phaseOrder = map[corev1.PodPhase]int{
	corev1.PodPending: 0,
	corev1.PodUnknown: 1,
	corev1.PodRunning: 2,
}

// logAge returns the base-2 logarithm of an age in nanoseconds, rounded down. Pods of
// about the same age compare as equal. With exact ages, the youngest pod would always
// be deleted first, and that pod tends to be on the node that was added last. An
// unknown time counts as the most recent, a time that is not in the past as the second
// most recent.
func logAge(since, now time.Time) int {
	switch {
	case since.IsZero():
		return -2
	case !since.Before(now):
		return -1
	default:
		return bits.Len64(uint64(now.Sub(since))) - 1
	}
}

// deletionCost returns the value of the annotation
// controller.kubernetes.io/pod-deletion-cost. It returns 0 if the annotation is absent
// or malformed; a plus sign or a leading zero is malformed.
func deletionCost(pod *corev1.Pod) int32 {
	text := pod.Annotations[corev1.PodDeletionCost]
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil || text[0] == '+' || (text[0] == '0' && text != "0") {
		return 0
	}
	return int32(cost)
}

// podsToDelete returns the n pods to delete first. It leaves the order of the slice
// pods unchanged. relatedPods counts the related active pods on each node; it is empty
// if the owner has no controller.
func podsToDelete(pods []*corev1.Pod, n int, relatedPods map[string]int, now time.Time) []*corev1.Pod {
	if n >= len(pods) {
		return pods
	}
	type ranked struct {
		rank
		pod *corev1.Pod
	}
	candidates := make([]ranked, len(pods))
	for i, pod := range pods {
		candidates[i] = ranked{rankOf(pod, relatedPods[pod.Spec.NodeName], now), pod}
	}
	slices.SortFunc(candidates, func(a, b ranked) int { return a.compare(b.rank) })
	chosen := make([]*corev1.Pod, n)
	for i := range chosen {
		chosen[i] = candidates[i].pod
	}
	return chosen
}
