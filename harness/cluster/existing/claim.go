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
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// ownerAnnotation of the namespace says which process made it: a
// [process.Identity].
const ownerAnnotation = "gauntlet.owner"

// claim is a run's right to the cluster: its namespace.
type claim struct {
	admin    kubernetes.Interface
	forget   func() // has the guard not remove it
	released sync.Once
	err      error
}

// claimCluster makes the namespace, unless it is somebody's.
func claimCluster(ctx context.Context, admin kubernetes.Interface, host string, cleaner []string) (*claim, error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	c := &claim{admin: admin, forget: func() {}}
	if len(cleaner) > 0 {
		if c.forget, err = process.GuardCommand(cleaner, os.Environ()); err != nil {
			return nil, err
		}
	}
	_, err = admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: Namespace, Annotations: map[string]string{ownerAnnotation: self.String()},
	}}, metav1.CreateOptions{})
	if err == nil {
		return c, nil
	}
	c.forget()
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("existing cluster: %s has a namespace %q: another run is on it, or one was killed; expected none (`gauntlet clean --kubeconfig=…` removes what a killed run left)", host, Namespace)
	}
	return nil, fmt.Errorf("existing cluster: making the namespace %q: %w", Namespace, err)
}

// release removes the namespace and waits until it is gone. Controllers that are
// off need not be asked: the garbage collector and the namespace's own are not
// among them.
func (c *claim) release(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.released.Do(func() {
		if c.err = removeNamespace(ctx, c.admin); c.err == nil {
			c.forget()
		}
	})
	return c.err
}

func removeNamespace(ctx context.Context, admin kubernetes.Interface) error {
	err := admin.CoreV1().Namespaces().Delete(ctx, Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the namespace %q: %w", Namespace, err)
	}
	return cluster.Poll(ctx, pollInterval, fmt.Sprintf("the namespace %q to go", Namespace), func(ctx context.Context) error {
		_, err := admin.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it is still there")
	})
}

// ErrInUse says that what is to be cleaned belongs to a run that goes on, or may.
var ErrInUse = errors.New("in use")

// Clean removes the namespace of a run that was killed, and reports whether there
// was one. Whoever made more on the cluster removes that itself.
func Clean(ctx context.Context, admin kubernetes.Interface) (removed bool, err error) {
	namespace, err := admin.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the namespace %q: %w", Namespace, err)
	}
	owner, err := process.ParseIdentity(namespace.Annotations[ownerAnnotation])
	if err != nil {
		return false, fmt.Errorf("the namespace %q is none of gauntlet's: %w", Namespace, err)
	}
	switch existence, err := owner.Existence(); {
	case err != nil:
		return false, err
	case existence == process.Lives:
		return false, fmt.Errorf("the namespace %q: %w by process %d", Namespace, ErrInUse, owner.PID)
	case existence == process.Elsewhere:
		return false, fmt.Errorf("the namespace %q: made on %s, and %w there for all that can be told here", Namespace, owner.Host, ErrInUse)
	}
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	return true, removeNamespace(ctx, admin)
}
