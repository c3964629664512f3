package faults

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherControllerName is the name of the ConfigMap whose controllerRef stands for
// another controller.
const otherControllerName = "other-controller"

// OtherClient returns the controllerRef of objects that belong to another controller. It
// refers to a ConfigMap in the run's namespace, because no controller reconciles ConfigMaps.
// If the ConfigMap does not exist, OtherClient creates it: the garbage collector would
// delete objects whose owner does not exist.
func (e *Env) OtherClient(ctx context.Context) (*metav1.OwnerReference, error) {
	configMaps := e.Admin.CoreV1().ConfigMaps(e.Namespace)
	owner, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: otherControllerName}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		owner, err = configMaps.Get(ctx, otherControllerName, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("creating configmaps %s/%s, which acts as another controller: %w", e.Namespace, otherControllerName, err)
	}
	return metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")), nil
}
