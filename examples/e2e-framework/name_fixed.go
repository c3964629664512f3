//go:build fixed

package ticket

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nameOf returns the metadata of an order's ticket. Two creates for one order use the same name,
// so the API server refuses the second one.
func nameOf(order *corev1.ConfigMap) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: order.Name + "-ticket", Namespace: order.Namespace}
}
