package endpoints

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan returns the Endpoints to write for a Service, or nil if no write is necessary.
//
// The argument current contains the existing Endpoints, or nil. The function does not modify them.
// The argument trigger is the time of the change that caused the sync, or zero if the time is
// unknown.
func plan(service *corev1.Service, pods []*corev1.Pod, current *endpoints, trigger time.Time) *endpoints {
	subsets, truncated := truncate(pack(addressEntries(service, pods)), Capacity)
	labels := labelsOf(service)
	if current != nil &&
		equalSubsets(pack(unpack(current.Subsets)), subsets) &&
		maps.Equal(current.Labels, labels) &&
		hasTruncationAnnotation(current, truncated) {
		return nil
	}
	next := &endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
	if current != nil {
		current.ObjectMeta.DeepCopyInto(&next.ObjectMeta)
	}
	next.Labels, next.Subsets = labels, subsets
	annotate(next, corev1.EndpointsOverCapacity, truncatedValue, truncated)
	annotate(next, corev1.EndpointsLastChangeTriggerTime, trigger.UTC().Format(time.RFC3339Nano), !trigger.IsZero())
	return next
}

// hasTruncationAnnotation reports whether the over-capacity annotation of the existing Endpoints is
// correct. If the argument truncated is true, the annotation must have the value "truncated".
// Otherwise the annotation must be missing.
func hasTruncationAnnotation(current *endpoints, truncated bool) bool {
	value, present := current.Annotations[corev1.EndpointsOverCapacity]
	return present == truncated && (!present || value == truncatedValue)
}

// annotate sets or removes one annotation, whose name is the argument key. If the argument present
// is true, it sets the annotation to value. Otherwise it removes the annotation.
func annotate(object *endpoints, key, value string, present bool) {
	if present {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, key, value)
	} else {
		delete(object.Annotations, key)
	}
}

// labelsOf returns the labels for the Endpoints of a Service: the Service's labels and those
// that the controller sets. The controller's labels take precedence.
func labelsOf(service *corev1.Service) map[string]string {
	labels := make(map[string]string, len(service.Labels)+2)
	maps.Copy(labels, service.Labels)
	labels[managedByLabel] = EventSource
	delete(labels, corev1.IsHeadlessService)
	if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		labels[corev1.IsHeadlessService] = ""
	}
	return labels
}
