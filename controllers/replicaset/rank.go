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

// rank is the position of a pod in the order in which scale-down deletes pods. The method
// compare compares the fields from top to bottom. Scale-down deletes the pod with the lower rank
// first.
//
// The controller computes the rank of a pod once, before sorting. The order of pods therefore has
// no cycles, such as a before b, b before c, c before a. Upstream compares the fields of each pair
// of pods anew, and its order can have cycles.
type rank struct {
	assigned    int   // 0 if the pod is not assigned to a node
	phase       int   // 0 Pending, 1 Unknown, 2 Running
	ready       int   // 0 if the pod is not ready
	cost        int32 // value of the annotation pod-deletion-cost
	relatedPods int   // negated number of related pods on the node, so pods on crowded nodes are deleted first
	readyAge    int   // logarithm of the time since the pod became ready (see logAge), or 0 if it is not ready
	restarts    int32 // negated restart count, so pods with more restarts are deleted first
	sidecars    int32 // negated restart count of the sidecars
	age         int   // logarithm of the time since the creation of the pod; see logAge
	uid         string
}

// compare returns a negative number if scale-down deletes the pod with rank r before the pod with
// the rank other.
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

// rankOf returns the rank of a pod for scale-down. The argument relatedPods is the number of
// related pods on the pod's node. Related pods are active and belong to the same owner or to one
// of its siblings; see [Kind].
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

// phaseOrder maps the phase of an active pod to a rank. Scale-down deletes pods with a lower
// rank first.
var phaseOrder = map[corev1.PodPhase]int{
	corev1.PodPending: 0,
	corev1.PodUnknown: 1,
	corev1.PodRunning: 2,
}

// logAge returns the base-2 logarithm of the age in nanoseconds, rounded down. The argument since
// is the start of the age. The result is -2 if since is the zero time, which means unknown. It is
// -1 if since is not before now.
//
// The logarithm makes pods of similar age equal. With exact ages, scale-down would always delete
// the youngest pod, which is often on the newest node.
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

// deletionCost returns the value of the annotation controller.kubernetes.io/pod-deletion-cost.
// It returns 0 if the annotation is missing or malformed. A number with a plus sign or a
// leading zero is malformed.
func deletionCost(pod *corev1.Pod) int32 {
	text := pod.Annotations[corev1.PodDeletionCost]
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil || text[0] == '+' || (text[0] == '0' && text != "0") {
		return 0
	}
	return int32(cost)
}

// podsToDelete returns the n pods that scale-down deletes first. If there are at most n pods, it
// returns all of them. It does not reorder the argument pods.
//
// The argument relatedPods maps a node to the number of related pods on this node. Related pods
// are active and belong to the owner or to one of its siblings; see [Kind]. The map is empty if no
// object controls the owner.
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
