package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// scaleOldToZero returns the changes that set spec.replicas of every old ReplicaSet to 0. It
// omits ReplicaSets that already have 0.
func scaleOldToZero(rs replicaSetSizes) []change {
	var changes []change
	for _, i := range rs.active() {
		if i != rs.newIndex {
			changes = append(changes, change{i, 0})
		}
	}
	return changes
}

// oldPodsStopped reports whether no pod of the old ReplicaSets is running, and no new one can
// appear.
//
// The status of every old ReplicaSet must have 0 replicas and the latest generation. Otherwise the
// ReplicaSet controller may not have observed the scale-down, and may still create pods. Terminal
// pods do not count as running. Perhaps nobody ever deletes them, so waiting for their deletion
// could block the rollout.
func oldPodsStopped(old []*appsv1.ReplicaSet, pods []*corev1.Pod) bool {
	for _, set := range old {
		if set.Status.Replicas > 0 || set.Status.ObservedGeneration < set.Generation {
			return false
		}
	}
	return !anyRunning(pods)
}

// anyRunning reports whether at least one pod is not terminal. A terminal pod has the phase
// Succeeded or Failed.
func anyRunning(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if !podutil.Terminal(pod) {
			return true
		}
	}
	return false
}
