// Package podutil answers questions about one pod: whether it is active, ready, available or
// terminating, and since when. The functions read only the given pod, and do not modify it.
package podutil

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Active reports whether a pod counts as a replica. A pod is active if it has no deletion
// timestamp and its phase is neither Succeeded nor Failed.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !Terminal(pod)
}

// Terminal reports whether a pod has ended: its phase is Succeeded or Failed.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Terminating reports whether a pod has a deletion timestamp and its phase is neither Succeeded
// nor Failed.
func Terminating(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && !Terminal(pod)
}

// Ready reports whether a pod is ready, and since when. The result since has a resolution of one
// second. It is the zero time if the condition Ready has no lastTransitionTime.
func Ready(pod *corev1.Pod) (since time.Time, ready bool) {
	condition := readyCondition(pod)
	if condition == nil || condition.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	return condition.LastTransitionTime.Time, true
}

// ReadyTransitionTime returns the lastTransitionTime of a pod's condition Ready, with a
// resolution of one second. It returns zero if the pod has no such condition.
func ReadyTransitionTime(pod *corev1.Pod) time.Time {
	if condition := readyCondition(pod); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}

// readyCondition returns the condition Ready of a pod. It returns nil if the pod has no such
// condition.
func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.PodReady {
			return condition
		}
	}
	return nil
}

// AvailableAt returns the time at which a pod becomes available if it stays ready. A pod becomes
// available when it has been ready for the time minReady. If minReady is 0, a ready pod is
// available, and the result is the zero time.
//
// The result ok is false if the pod is not ready. It is also false if minReady is positive and
// the condition Ready has no lastTransitionTime.
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

// Restarts returns the highest restart count among a pod's containers, and the highest among its
// sidecars.
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

// isSidecarName reports whether the pod has a sidecar with the given name.
func isSidecarName(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if container := &pod.Spec.InitContainers[i]; container.Name == name {
			return IsSidecar(container)
		}
	}
	return false
}

// IsSidecar reports whether an init container is a sidecar. A sidecar has the restartPolicy
// Always.
func IsSidecar(init *corev1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
