package podutil

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trim returns a copy of a pod with only the fields that the controllers read. Informer caches
// contain every pod of the cluster, and most of a pod is container configuration. The copy
// therefore saves much memory.
//
// If a controller starts to read another field, add the field here. Never write a trimmed pod to
// the API server.
func Trim(pod *corev1.Pod) *corev1.Pod {
	trimmed := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			Generation:        pod.Generation,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			Labels:            pod.Labels,
			OwnerReferences:   pod.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Hostname:       pod.Spec.Hostname,
			Subdomain:      pod.Spec.Subdomain,
			Containers:     trimContainers(pod.Spec.Containers),
			InitContainers: trimContainers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			PodIP:                 pod.Status.PodIP,
			PodIPs:                pod.Status.PodIPs,
			ContainerStatuses:     trimStatuses(pod.Status.ContainerStatuses),
			InitContainerStatuses: trimStatuses(pod.Status.InitContainerStatuses),
		},
	}
	if cost, ok := pod.Annotations[corev1.PodDeletionCost]; ok {
		trimmed.Annotations = map[string]string{corev1.PodDeletionCost: cost}
	}
	if condition := readyCondition(pod); condition != nil {
		trimmed.Status.Conditions = []corev1.PodCondition{{
			Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
		}}
	}
	return trimmed
}

// trimContainers returns the containers that have ports or a restart policy. It keeps only their
// names, ports and restart policies.
func trimContainers(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		if c := &containers[i]; len(c.Ports) > 0 || c.RestartPolicy != nil {
			kept = append(kept, corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
		}
	}
	return kept
}

// trimStatuses returns the statuses of containers that have restarted. It keeps only their names
// and restart counts.
func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		if s := &statuses[i]; s.RestartCount > 0 {
			kept = append(kept, corev1.ContainerStatus{Name: s.Name, RestartCount: s.RestartCount})
		}
	}
	return kept
}
