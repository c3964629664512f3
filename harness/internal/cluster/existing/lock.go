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

// ownerAnnotation is the annotation of the namespace of a run that identifies the gauntlet process.
// Its value is a [process.Identity].
const ownerAnnotation = "gauntlet.owner"

// namespaceLock is the lock that a run holds on an existing cluster. The namespace of the run is
// the lock: the run holds the lock while the namespace exists.
type namespaceLock struct {
	admin     kubernetes.Interface
	unguard   func()    // tells the guard process not to remove the namespace if gauntlet dies
	released  sync.Once // deletes the namespace
	removeErr error     // result of the deletion
}

// acquireLock creates the namespace of the run, and returns an error if the namespace exists. If
// gauntlet dies before it releases the lock, the guard process runs cleanupCommand. The argument
// host is the URL of the API server, for the error message.
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

// release deletes the namespace of the run and waits until the namespace is gone. This works
// even without the controllers under test, because the namespace controller deletes the
// objects.
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

// removeNamespace deletes the namespace of a run and waits until the namespace is gone. It returns
// nil if the namespace does not exist.
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
		return errors.New("the namespace still exists")
	})
}

// ErrInUse is the error of [Clean] if the run that created the namespace may still be running.
var ErrInUse = errors.New("in use")

// Clean deletes the namespace of a run that was killed, and reports whether the namespace
// existed. It deletes no other objects.
//
// If the gauntlet process that created the namespace is running, Clean returns an error that
// wraps [ErrInUse]. It does the same if that process was started on another machine.
func Clean(ctx context.Context, admin kubernetes.Interface) (removed bool, err error) {
	namespace, err := admin.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting namespace %q: %w", Namespace, err)
	}
	owner, err := process.ParseIdentity(namespace.Annotations[ownerAnnotation])
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
