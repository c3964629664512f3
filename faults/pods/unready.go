package pods

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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// pendingUndo identifies a pod for which the fault must still undo its action, and says when.
// For example, the fault makes an unready pod ready again.
type pendingUndo struct {
	namespace, name string
	uid             types.UID
	due             time.Time // earliest time at which the fault undoes the action
}

// makeUnready makes a pod not ready. With real kubelets, it makes the stand-in container's
// readiness probe fail, which the kubelet notices within about a second. The returned version is
// then 0.
//
// With simulated kubelets, makeUnready sets the conditions Ready and ContainersReady to False. It
// then returns the pod's new resourceVersion.
func (c *churn) makeUnready(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	if c.env.Capabilities.Has(cluster.RealKubelets) {
		return 0, c.callStandin(ctx, pod, standin.Unready)
	}
	return c.writeReady(ctx, pod, corev1.ConditionFalse, "ContainersNotReady")
}

// makeReady makes a pod ready again. It does nothing for a pod that is terminating, Succeeded or
// Failed, because such a pod can never become ready.
func (c *churn) makeReady(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil || isTerminal(pod) {
		return nil
	}
	if c.env.Capabilities.Has(cluster.RealKubelets) {
		return c.callStandin(ctx, pod, standin.Ready)
	}
	_, err := c.writeReady(ctx, pod, corev1.ConditionTrue, "")
	return err
}

// restoreDue undoes the actions whose downtime has passed, for example makes pods ready again. It
// ignores errors, because the fault tries the undo again at the next tick. In the end, Heal tries
// the undo once more, and returns the error if the undo fails again.
func (c *churn) restoreDue(ctx context.Context) {
	now := c.env.Clock.Now()
	c.pendingUndos = slices.DeleteFunc(c.pendingUndos, func(p pendingUndo) bool {
		return !p.due.After(now) && c.restore(ctx, p) == nil
	})
}

// restoreAll undoes all actions that are not undone yet, without waiting for the downtime. Heal
// calls it.
func (c *churn) restoreAll(ctx context.Context) error {
	var errs []error
	c.pendingUndos = slices.DeleteFunc(c.pendingUndos, func(p pendingUndo) bool {
		err := c.restoreWhenReachable(ctx, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("undoing action %s on pod %s/%s: %w", c.action, p.namespace, p.name, err))
		}
		return err == nil
	})
	return errors.Join(errs...)
}

// unreachableRetryInterval is the time between two attempts to undo an action, while the
// stand-in container does not answer.
const unreachableRetryInterval = 500 * time.Millisecond

// restoreWhenReachable undoes the action on one pod. While the pod's stand-in container does not
// answer, restoreWhenReachable tries again until ctx is done.
func (c *churn) restoreWhenReachable(ctx context.Context, p pendingUndo) (err error) {
	_ = wait.PollUntilContextCancel(ctx, unreachableRetryInterval, true, func(ctx context.Context) (bool, error) {
		err = c.restore(ctx, p)
		return !isUnreachable(err), nil
	})
	return err
}

// restore undoes the action on one pod. It does nothing if this pod no longer exists, even if a
// new pod has the same name.
func (c *churn) restore(ctx context.Context, p pendingUndo) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := c.env.Admin.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil || pod.UID != p.uid {
			return err
		}
		return actions[c.action].undo(c, ctx, pod)
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// writeReady sets a pod's conditions Ready and ContainersReady to the given value, and returns
// the new resourceVersion.
func (c *churn) writeReady(ctx context.Context, pod *corev1.Pod, value corev1.ConditionStatus, reason string) (history.Version, error) {
	changed := pod.DeepCopy()
	now := metav1.NewTime(c.env.Clock.Now())
	setCondition(&changed.Status, corev1.PodReady, value, reason, now)
	setCondition(&changed.Status, corev1.ContainersReady, value, reason, now)
	return c.writeStatus(ctx, changed)
}
