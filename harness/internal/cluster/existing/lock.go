package existing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// ownerAnnotation is the annotation that identifies the gauntlet process that created the run's
// namespace. The value is a [process.Identity].
const ownerAnnotation = "gauntlet.owner"

// namespaceLock is the lock that a run holds on an existing cluster. The run holds the lock while
// the run's namespace exists.
type namespaceLock struct {
	admin     kubernetes.Interface
	unguard   func()    // tells the guard process that it need no longer remove the namespace if gauntlet dies
	released  sync.Once // deletes the namespace only once
	removeErr error     // error of the deletion of the namespace
}

// acquireLock creates the run's namespace, which is the lock of the cluster. If the namespace
// already exists, acquireLock returns an error, which contains host, the API server's URL. If
// gauntlet dies before it releases the lock, the guard process runs cleanupCommand.
func acquireLock(ctx context.Context, admin kubernetes.Interface, host string, cleanupCommand []string) (*namespaceLock, error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	l := &namespaceLock{admin: admin, unguard: func() {}}
	if len(cleanupCommand) > 0 {
		if l.unguard, err = process.GuardCommand(cleanupCommand, os.Environ()); err != nil {
			return nil, err
		}
	}
	_, err = admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: Namespace, Annotations: map[string]string{ownerAnnotation: self.String()},
	}}, metav1.CreateOptions{})
	if err == nil {
		return l, nil
	}
	l.unguard()
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("existing cluster: namespace %q already exists on %s: another run uses the cluster, or a run was killed; wait for the other run, or remove the objects of a killed run with `gauntlet clean --kubeconfig=…`", Namespace, host)
	}
	return nil, fmt.Errorf("existing cluster: creating namespace %q: %w", Namespace, err)
}

// release deletes the run's namespace, and so releases the lock. It waits until the namespace is
// gone. The cluster's namespace controller deletes the objects, so the controllers under test need
// not run.
//
// Only the first call deletes the namespace; later calls return the same error.
func (l *namespaceLock) release(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.released.Do(func() {
		if l.removeErr = removeNamespace(ctx, l.admin); l.removeErr == nil {
			l.unguard()
		}
	})
	return l.removeErr
}

// removeNamespace deletes [Namespace] and waits until the namespace is gone. If the namespace does
// not exist, removeNamespace returns nil.
func removeNamespace(ctx context.Context, admin kubernetes.Interface) error {
	err := admin.CoreV1().Namespaces().Delete(ctx, Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting namespace %q: %w", Namespace, err)
	}
	return cluster.Poll(ctx, pollInterval, fmt.Sprintf("the deletion of namespace %q", Namespace), func(ctx context.Context) error {
		_, err := admin.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("namespace %q still exists", Namespace)
	})
}

// ErrInUse means that a run may still be using the cluster. The run has created the namespace,
// which is the lock of the cluster. [Clean] returns an error that wraps ErrInUse.
var ErrInUse = errors.New("in use")

// Clean deletes the namespace of a run that was killed, but no objects outside of this namespace.
// The result removed is false if there is no such namespace.
//
// If the gauntlet process that created the namespace still runs or was started on another machine,
// Clean deletes nothing. The error then wraps [ErrInUse].
func Clean(ctx context.Context, admin kubernetes.Interface) (removed bool, err error) {
	namespace, err := admin.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting namespace %q: %w", Namespace, err)
	}
	mark, ok := namespace.Annotations[ownerAnnotation]
	if !ok {
		return false, fmt.Errorf("namespace %q was not created by gauntlet, because it has no annotation %s; delete or rename it with kubectl if a run needs the name", Namespace, ownerAnnotation)
	}
	owner, err := process.ParseIdentity(mark)
	if err != nil {
		return false, fmt.Errorf("namespace %q was not created by gauntlet: annotation %s: %w", Namespace, ownerAnnotation, err)
	}
	switch existence, err := owner.Existence(); {
	case err != nil:
		return false, err
	case existence == process.Lives:
		return false, fmt.Errorf("namespace %q is %w by process %d", Namespace, ErrInUse, owner.PID)
	case existence == process.Elsewhere:
		return false, fmt.Errorf("namespace %q was created on machine %s and may be %w there; run the command on that machine", Namespace, owner.Host, ErrInUse)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return true, removeNamespace(ctx, admin)
}
