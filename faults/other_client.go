package faults

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherControllerName is the name of a ConfigMap that stands for another controller. To take a pod
// away from its ReplicaSet, a fault sets the pod's controllerRef to this ConfigMap. The ConfigMap
// is in the namespace of the test run.
const otherControllerName = "other-controller"

// OtherClient returns a controllerRef that makes an object, such as a pod, belong to another
// controller. The controllers under test must then leave the object alone.
//
// The controllerRef names a ConfigMap in the namespace of the test run, because no controller
// reconciles ConfigMaps. OtherClient creates the ConfigMap if it does not exist. The ConfigMap
// must exist, because the garbage collector deletes objects whose owner does not exist.
func (e *Env) OtherClient(ctx context.Context) (*metav1.OwnerReference, error) {
	configMaps := e.Admin.CoreV1().ConfigMaps(e.Namespace)
	owner, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: otherControllerName}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		owner, err = configMaps.Get(ctx, otherControllerName, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("creating ConfigMap %s/%s, which acts as another controller: %w", e.Namespace, otherControllerName, err)
	}
	return metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")), nil
}
