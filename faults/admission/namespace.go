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

// Namespace is the fault type namespace-terminating.
var Namespace = faults.Type{
	Name: "namespace-terminating",
	Description: "The fault deletes the namespace of the workload, and with it all objects, one resource after the other in no particular order. " +
		"The API server refuses creates in the namespace with 403 (Forbidden), even when the namespace is empty.",
	Healing: "The namespace is removed and created again. The deleted objects stay deleted.",
	Needs:   []cluster.Capability{cluster.OwnsControlPlane},
	New: func(params faults.Params) (faults.Fault, error) {
		return &terminating{}, params.Decode(&struct{}{})
	},
	NotGeneratedReason: "it deletes all of the users' objects, and most of their later operations fail",
}

// namespaceFinalizer prevents the removal of the deleted namespace until Heal, so that
// the namespace stays in the phase Terminating.
const namespaceFinalizer = "gauntlet/terminating"

// namespaceTimeout limits the wait for the removal of the namespace and its content.
// The content includes pods, which have a grace period.
const namespaceTimeout = 2 * time.Minute

// terminating is a namespace-terminating fault in force.
type terminating struct {
	env *faults.Env
	uid types.UID // of the namespace; "" before its deletion
}

func (n *terminating) Inject(ctx context.Context, env *faults.Env) error {
	n.env = env
	edited, err := n.edit(ctx, func(found *corev1.Namespace) { found.Finalizers = append(found.Finalizers, namespaceFinalizer) })
	if err != nil {
		return fmt.Errorf("adding a finalizer to namespaces %s: %w", env.Namespace, err)
	}
	n.uid = edited.UID
	if err := n.namespaces().Delete(ctx, env.Namespace, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.uid))}); err != nil {
		err = fmt.Errorf("deleting namespaces %s: %w", env.Namespace, err)
		return errors.Join(err, n.removeFinalizer(context.WithoutCancel(ctx)))
	}
	env.Report.Fired(0, &history.Ref{Resource: "namespaces", Name: env.Namespace, UID: n.uid}, "deleted")
	return nil
}

// Heal returns when a new namespace of the same name admits pods.
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
			return nil // the delete failed, so the namespace is still usable
		}
		if err == nil && made.UID == n.uid {
			return fmt.Errorf("the old namespace still exists, conditions: %v", made.Status.Conditions)
		}
		return err
	})
	if err != nil {
		return err
	}
	return cluster.Poll(ctx, inForceInterval, "the API server to admit pods to namespace "+n.env.Namespace, func(ctx context.Context) error {
		return probes[podResource](ctx, n.env)
	})
}

// removeFinalizer removes namespaceFinalizer, so that the deletion of the namespace
// can finish.
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
		return fmt.Errorf("removing the finalizer of namespaces %s: %w", n.env.Namespace, err)
	}
	return nil
}

// edit updates the namespace and retries on a conflict.
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

func (n *terminating) namespaces() typedcorev1.NamespaceInterface {
	return n.env.Admin.CoreV1().Namespaces()
}

func (n *terminating) Summary() string {
	if n.uid == "" {
		return "the namespace was not deleted"
	}
	return "deleted the namespace"
}
