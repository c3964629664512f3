package faults

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherControllerName is the name of a ConfigMap in the namespace of the run. The ConfigMap
// stands for another controller. A fault makes the ConfigMap the controller of objects to take
// these objects away from the subject.
const otherControllerName = "other-controller"

// OtherClient returns a controllerRef that makes an object belong to another controller.
//
// The controllerRef refers to a ConfigMap in the namespace of the run, because no controller
// reconciles ConfigMaps. OtherClient creates the ConfigMap if it does not exist. If the
// ConfigMap did not exist, the garbage collector would delete every object that has this
// controllerRef.
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
