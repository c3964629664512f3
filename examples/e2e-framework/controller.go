// Package ticket is an example of an end-to-end test that injects a fault. It contains the small
// controller that the test checks.
package ticket

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// orderLabel marks a ConfigMap as an order. The controller reconciles only orders.
const orderLabel = "order"

// ticketAnnotation marks an order whose ticket exists. The controller does not create another
// ticket for this order.
const ticketAnnotation = "ticket"

// reconciler creates one ticket for each order. Orders and tickets are ConfigMaps.
type reconciler struct{ client.Client }

// Run runs the controller for the orders of one namespace until ctx is canceled.
func Run(ctx context.Context, config *rest.Config, namespace string) error {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	// A test may call Run twice in one process, where a controller name may otherwise occur only once.
	options := controller.Options{SkipNameValidation: new(true)}
	builder := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).WithOptions(options)
	if err := builder.Complete(&reconciler{manager.GetClient()}); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// Reconcile creates the ticket of an order, and then marks the order with ticketAnnotation.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var order corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &order); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if order.Labels[orderLabel] == "" || order.Annotations[ticketAnnotation] != "" {
		return ctrl.Result{}, nil
	}
	ticket := &corev1.ConfigMap{ObjectMeta: nameOf(&order)}
	if err := controllerutil.SetControllerReference(&order, ticket, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, ticket); client.IgnoreAlreadyExists(err) != nil {
		return ctrl.Result{}, err
	}
	done := order.DeepCopy()
	metav1.SetMetaDataAnnotation(&done.ObjectMeta, ticketAnnotation, "yes")
	return ctrl.Result{}, r.Patch(ctx, done, client.MergeFrom(&order))
}
