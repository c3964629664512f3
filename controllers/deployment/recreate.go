package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// scaleOldToZero returns how the old ReplicaSets are to be brought to nothing.
func scaleOldToZero(rs replicaSetSizes) []change {
	var changes []change
	for _, i := range rs.active() {
		if i != rs.newIndex {
			changes = append(changes, change{i, 0})
		}
	}
	return changes
}

// oldPodsStopped reports whether nothing old runs any more, and nothing old will: no old
// ReplicaSet counts a replica, each has been seen by its controller to ask for
// none, which might still be creating pods for it otherwise, and every pod of
// theirs has come to its end. Pods that have, but are still there, do not count:
// nobody may ever delete them.
func oldPodsStopped(old []*appsv1.ReplicaSet, pods []*corev1.Pod) bool {
	for _, set := range old {
		if set.Status.Replicas > 0 || set.Status.ObservedGeneration < set.Generation {
			return false
		}
	}
	return !anyRunning(pods)
}

func anyRunning(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if !podutil.Terminal(pod) {
			return true
		}
	}
	return false
}
