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

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// pendingUndo is a pod to which something was done that is to be undone.
type pendingUndo struct {
	namespace, name string
	uid             types.UID
	due             time.Time // when it is to be undone
}

// makeUnready has a readiness probe fail, or writes what a kubelet writes then. A
// real one looks every second.
func (c *churn) makeUnready(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	if c.env.Provider == faults.Kubelets {
		return 0, c.callStandin(ctx, victim, standin.Unready)
	}
	return c.writeReady(ctx, victim, corev1.ConditionFalse, "ContainersNotReady")
}

// makeReady undoes it, unless the pod has come to its end: such a one is never
// ready again.
func (c *churn) makeReady(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil || isTerminal(pod) {
		return nil
	}
	if c.env.Provider == faults.Kubelets {
		return c.callStandin(ctx, pod, standin.Ready)
	}
	_, err := c.writeReady(ctx, pod, corev1.ConditionTrue, "")
	return err
}

// restoreDue undoes what was done to those pods whose time is over. What fails is tried
// again at the next tick, and by Heal, which reports it.
func (c *churn) restoreDue(ctx context.Context) {
	now := c.env.Clock.Now()
	c.pendingUndos = slices.DeleteFunc(c.pendingUndos, func(p pendingUndo) bool {
		return !p.due.After(now) && c.restore(ctx, p) == nil
	})
}

// restoreAll undoes what was done to every pod.
func (c *churn) restoreAll(ctx context.Context) error {
	var all []error
	c.pendingUndos = slices.DeleteFunc(c.pendingUndos, func(p pendingUndo) bool {
		err := c.restoreWhenReachable(ctx, p)
		if err != nil {
			all = append(all, fmt.Errorf("undoing the %s of pod %s: %w", c.action, p.name, err))
		}
		return err == nil
	})
	return errors.Join(all...)
}

// unreachableRetryInterval is the time from one try to the next at what is out of reach.
const unreachableRetryInterval = 500 * time.Millisecond

// restoreWhenReachable waits, for as long as ctx allows, for a pod that is out of reach:
// its container is being started again, or its node is lost.
func (c *churn) restoreWhenReachable(ctx context.Context, p pendingUndo) (err error) {
	_ = wait.PollUntilContextCancel(ctx, unreachableRetryInterval, true, func(ctx context.Context) (bool, error) {
		err = c.restore(ctx, p)
		return !isUnreachable(err), nil
	})
	return err
}

// restore undoes what was done to a pod, if it is still there.
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

// writeReady writes both conditions that say whether a pod is ready.
func (c *churn) writeReady(ctx context.Context, pod *corev1.Pod, value corev1.ConditionStatus, reason string) (history.Version, error) {
	changed := pod.DeepCopy()
	now := metav1.NewTime(c.env.Clock.Now())
	setCondition(&changed.Status, corev1.PodReady, value, reason, now)
	setCondition(&changed.Status, corev1.ContainersReady, value, reason, now)
	return c.writeStatus(ctx, changed)
}
