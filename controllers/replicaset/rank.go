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

// rank places a pod in the order of deletion. Fields are compared in turn, and
// the lower value goes first. Reducing a pod to values once, and not comparing
// pods pairwise, makes the order a total one whatever the pods look like.
type rank struct {
	assigned    int   // 0 without a node
	phase       int   // 0 Pending, 1 Unknown, 2 Running
	ready       int   // 0 not ready
	cost        int32 // of deletion, as the user annotated it
	relatedPods int   // negated: the crowded node goes first
	readyAge    int   // power of two; 0 unless ready
	restarts    int32 // negated: the one that restarted more goes first
	sidecars    int32 // negated restarts of sidecars
	age         int   // power of two
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

// rankOf ranks a pod among relatedPods related active pods on its node.
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

// logAge is the power of two of an age in nanoseconds. Ages of one class are
// equal, so that among pods of about the same age the choice is arbitrary and
// not always the youngest, which would tend to be on the node added last. A
// moment that is not known counts as the most recent of all, one that is not in
// the past as the next.
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

// deletionCost reads the annotation by which users say which pods to spare. An
// absent or malformed one is 0; a plus sign and leading zeros are malformed.
func deletionCost(pod *corev1.Pod) int32 {
	text := pod.Annotations[corev1.PodDeletionCost]
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil || text[0] == '+' || (text[0] == '0' && text != "0") {
		return 0
	}
	return int32(cost)
}

// podsToDelete returns the n pods to delete first. relatedPods counts the related
// active pods on each node, and is empty for an owner that stands alone. The
// order of pods is left as it was.
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
