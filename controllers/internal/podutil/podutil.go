// Package podutil answers the questions that workload controllers ask about a
// single pod: is it active, ready, available and since when, terminating. It
// looks at nothing but the pod it is given.
package podutil

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Active reports whether a pod counts as a replica: it is not terminating and
// has not run to its end.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !Terminal(pod)
}

// Terminal reports whether a pod has run to its end, well or badly.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Terminating reports whether a pod is being deleted and still runs.
func Terminating(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && !Terminal(pod)
}

// Ready reports whether a pod is ready, and since when. The time is zero when
// the pod does not say; it has whole seconds.
func Ready(pod *corev1.Pod) (since time.Time, ready bool) {
	condition := readyCondition(pod)
	if condition == nil || condition.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	return condition.LastTransitionTime.Time, true
}

// ReadyTransitionTime returns when a pod last became ready or ceased to be. The
// time is zero when the pod does not say; it has whole seconds.
func ReadyTransitionTime(pod *corev1.Pod) time.Time {
	if condition := readyCondition(pod); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}

func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.PodReady {
			return condition
		}
	}
	return nil
}

// AvailableAt returns the moment at which a pod counts as available if it stays
// as it is: once it has been ready for minReady. The time is zero for one that
// is available whatever the time. ok is false when the pod is not ready, or
// when minReady cannot be measured because it does not say since when it is.
func AvailableAt(pod *corev1.Pod, minReady time.Duration) (at time.Time, ok bool) {
	since, ready := Ready(pod)
	switch {
	case !ready:
		return time.Time{}, false
	case minReady <= 0:
		return time.Time{}, true
	case since.IsZero():
		return time.Time{}, false
	default:
		return since.Add(minReady), true
	}
}

// Restarts returns the largest restart count among a pod's containers, and
// among its sidecars (init containers that always restart).
func Restarts(pod *corev1.Pod) (containers, sidecars int32) {
	for i := range pod.Status.ContainerStatuses {
		containers = max(containers, pod.Status.ContainerStatuses[i].RestartCount)
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if status.RestartCount > sidecars && isSidecarName(pod, status.Name) {
			sidecars = status.RestartCount
		}
	}
	return containers, sidecars
}

func isSidecarName(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if container := &pod.Spec.InitContainers[i]; container.Name == name {
			return IsSidecar(container)
		}
	}
	return false
}

// IsSidecar reports whether an init container is a sidecar: one that always
// restarts, and runs as long as the pod does.
func IsSidecar(init *corev1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
