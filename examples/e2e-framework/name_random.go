//go:build !fixed

package ticket

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nameOf returns the metadata of an order's ticket. It has a bug: the API server adds a random
// suffix to the name. If the response to a create is lost, the retry creates a second ticket.
func nameOf(order *corev1.ConfigMap) metav1.ObjectMeta {
	return metav1.ObjectMeta{GenerateName: order.Name + "-ticket-", Namespace: order.Namespace}
}
