package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// scaleOldToZero returns the changes that scale all old ReplicaSets to 0.
func scaleOldToZero(rs replicaSetSizes) []change {
	var changes []change
	for _, i := range rs.active() {
		if i != rs.newIndex {
			changes = append(changes, change{i, 0})
		}
	}
	return changes
}

// oldPodsStopped reports whether no pod of the old ReplicaSets is running, and none can be
// created any more.
//
// The status of every old ReplicaSet must have no replicas and the latest generation: a
// ReplicaSet controller that has not observed the scale-down may still create pods. Terminal
// pods do not count as running, because they may never be deleted.
func oldPodsStopped(old []*appsv1.ReplicaSet, pods []*corev1.Pod) bool {
	for _, set := range old {
		if set.Status.Replicas > 0 || set.Status.ObservedGeneration < set.Generation {
			return false
		}
	}
	return !anyRunning(pods)
}

// anyRunning reports whether one of the pods is not terminal.
func anyRunning(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if !podutil.Terminal(pod) {
			return true
		}
	}
	return false
}
