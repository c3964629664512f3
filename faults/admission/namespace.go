package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Namespace is the fault type namespace-terminating: it deletes the namespace of the test run.
var Namespace = faults.Type{
	Name: "namespace-terminating",
	Description: "The fault deletes the namespace of the workload, and with it all objects, one resource after the other in no particular order. " +
		"The API server refuses creates in the namespace with 403 (Forbidden), even when the namespace is empty.",
	Healing: "The namespace is removed and created again. The deleted objects stay deleted.",
	Needs:   []cluster.Capability{cluster.OwnsControlPlane, cluster.ControlsAdmission},
	New: func(params faults.Params) (faults.Fault, error) {
		return &terminating{}, params.Decode(&struct{}{})
	},
	NotGeneratedReason: "it deletes all objects of the workload, and most later steps of the workload fail",
}

// namespaceFinalizer is a finalizer that keeps the deleted namespace in the phase
// Terminating. Heal removes it.
const namespaceFinalizer = "gauntlet/terminating"

// namespaceTimeout is the maximum time that Heal waits. It is long, because the API server
// removes the namespace only after its pods, which have a grace period.
const namespaceTimeout = 2 * time.Minute

// terminating is a fault of type namespace-terminating. It deletes the namespace of the test run.
type terminating struct {
	env *faults.Env
	uid types.UID // UID of the deleted namespace; "" before the deletion
}

func (n *terminating) Inject(ctx context.Context, env *faults.Env) error {
	n.env = env
	edited, err := n.edit(ctx, func(found *corev1.Namespace) { found.Finalizers = append(found.Finalizers, namespaceFinalizer) })
	if err != nil {
		return fmt.Errorf("adding a finalizer to namespace %s: %w", env.Namespace, err)
	}
	n.uid = edited.UID
	if err := n.namespaces().Delete(ctx, env.Namespace, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.uid))}); err != nil {
		err = fmt.Errorf("deleting namespace %s: %w", env.Namespace, err)
		return errors.Join(err, n.removeFinalizer(context.WithoutCancel(ctx)))
	}
	env.Report.Fired(0, &history.Ref{Resource: "namespaces", Name: env.Namespace, UID: n.uid}, "deleted")
	return nil
}

// Heal waits until the API server has removed the namespace, and creates a namespace with the
// same name. It returns when the API server admits pods to the new namespace.
func (n *terminating) Heal(ctx context.Context) error {
	if n.uid == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	if err := n.removeFinalizer(ctx); err != nil {
		return err
	}
	err := cluster.Poll(ctx, inForceInterval, "the new namespace "+n.env.Namespace, func(ctx context.Context) error {
		made, err := n.namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.env.Namespace}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			made, err = n.namespaces().Get(ctx, n.env.Namespace, metav1.GetOptions{})
		}
		if err == nil && made.UID == n.uid && made.DeletionTimestamp == nil {
			return nil // Inject did not delete the namespace, so it is still usable
		}
		if err == nil && made.UID == n.uid {
			return fmt.Errorf("namespace %s is still terminating, with conditions %v", made.Name, made.Status.Conditions)
		}
		return err
	})
	if err != nil {
		return err
	}
	return cluster.Poll(ctx, inForceInterval, "the API server to admit pods to namespace "+n.env.Namespace, func(ctx context.Context) error {
		return probePod(ctx, n.env)
	})
}

// removeFinalizer removes namespaceFinalizer from the deleted namespace, so that the API server
// can remove the namespace.
func (n *terminating) removeFinalizer(ctx context.Context) error {
	_, err := n.edit(ctx, func(found *corev1.Namespace) {
		if found.UID == n.uid {
			found.Finalizers = slices.DeleteFunc(found.Finalizers, func(f string) bool { return f == namespaceFinalizer })
		}
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the finalizer from namespace %s: %w", n.env.Namespace, err)
	}
	return nil
}

// edit reads the namespace of the test run, passes the namespace to the callback change, and
// updates the namespace. It returns the updated namespace. After a conflict, edit repeats all
// three steps.
func (n *terminating) edit(ctx context.Context, change func(*corev1.Namespace)) (edited *corev1.Namespace, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := n.namespaces().Get(ctx, n.env.Namespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(found)
		edited, err = n.namespaces().Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
	return edited, err
}

// namespaces returns the client that the fault uses for namespaces. This client's requests
// bypass the fault proxy.
func (n *terminating) namespaces() typedcorev1.NamespaceInterface {
	return n.env.Admin.CoreV1().Namespaces()
}

func (n *terminating) Summary() string {
	if n.uid == "" {
		return "did not delete the namespace"
	}
	return "deleted the namespace"
}
