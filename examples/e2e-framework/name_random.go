//go:build !fixed

package ticket

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nameOf returns the metadata of a ticket. It has a bug: the API server adds a random suffix, so a
// create whose response was lost is not recognized as a repetition. The order gets two tickets.
func nameOf(order *corev1.ConfigMap) metav1.ObjectMeta {
	return metav1.ObjectMeta{GenerateName: order.Name + "-ticket-", Namespace: order.Namespace}
}
