package faults

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherControllerName is the name of the object that controls what is no business of the
// subject's.
const otherControllerName = "stranger"

// OtherClient is a controllerRef to an object of the run's namespace that no
// controller cares for. It is made if need be: the garbage collector looks for
// owners.
func (e *Env) OtherClient(ctx context.Context) (*metav1.OwnerReference, error) {
	maps := e.Admin.CoreV1().ConfigMaps(e.Namespace)
	owner, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: otherControllerName}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		owner, err = maps.Get(ctx, otherControllerName, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("making ConfigMap %s, the other controller: %w", otherControllerName, err)
	}
	return metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")), nil
}
