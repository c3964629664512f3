// Package virtual is an example of a controller that gauntlet tests in virtual time, as the subject
// go:examples/virtual. For each ConfigMap with the label "run", the controller keeps a pod of the
// same name.
package virtual

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run runs one replica until ctx is canceled. To restart the replica, gauntlet calls Run again.
func Run(ctx context.Context, c *rest.Config) error {
	m, err := ctrl.NewManager(c, ctrl.Options{
		LeaderElection: true, LeaderElectionID: "run", LeaderElectionNamespace: "kube-system",
		Metrics: server.Options{BindAddress: "0"}, // a socket would stop the virtual clock
		// All replicas are in one process, where a controller name may otherwise occur only once.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Pod{}).Complete(&reconciler{m.GetClient()}); err != nil {
		return err
	}
	return m.Start(ctx)
}

// reconciler creates a pod for each ConfigMap with the label "run".
type reconciler struct{ client.Client }

// Reconcile creates the pod of a ConfigMap if the pod does not exist.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var owner corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	image, ok := owner.Labels["run"]
	if !ok || owner.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: owner.Namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "run", Image: image}}},
	}
	if err := ctrl.SetControllerReference(&owner, pod, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Get(ctx, request.NamespacedName, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, pod))
}
