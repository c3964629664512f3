//go:build fixed

package ticket

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nameOf returns the metadata of a ticket. The name follows from the order, so the API server
// refuses a second create of the same ticket.
func nameOf(order *corev1.ConfigMap) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: order.Name + "-ticket", Namespace: order.Namespace}
}
