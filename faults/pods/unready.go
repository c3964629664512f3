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
	"k8s.io/client-go/util/retry"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// unreadyPod is a pod that was made unready.
type unreadyPod struct {
	namespace, name string
	uid             types.UID
	due             time.Time // when it may be ready again
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// makeUnready writes what a kubelet writes when a readiness probe fails. Whatever
// may have been written, be its answer lost, is undone later.
func (c *churn) makeUnready(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	version, err := c.writeReady(ctx, victim, corev1.ConditionFalse, "ContainersNotReady")
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.unready = append(c.unready, unreadyPod{
			namespace: victim.Namespace, name: victim.Name, uid: victim.UID, due: c.env.Clock.Now().Add(c.downtime),
		})
	}
	return version, err
}

// restoreDue makes those pods ready again whose time is over. What fails is tried
// again at the next tick, and by Heal, which reports it.
func (c *churn) restoreDue(ctx context.Context) {
	now := c.env.Clock.Now()
	c.unready = slices.DeleteFunc(c.unready, func(p unreadyPod) bool {
		return !p.due.After(now) && c.restore(ctx, p) == nil
	})
}

// restoreAll makes every pod ready again.
func (c *churn) restoreAll(ctx context.Context) error {
	var all []error
	c.unready = slices.DeleteFunc(c.unready, func(p unreadyPod) bool {
		err := c.restore(ctx, p)
		if err != nil {
			all = append(all, fmt.Errorf("making pod %s ready again: %w", p.name, err))
		}
		return err == nil
	})
	return errors.Join(all...)
}

// restore makes a pod ready, if it is still there and has not come to its end:
// such a one is never ready again.
func (c *churn) restore(ctx context.Context, p unreadyPod) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := c.env.Admin.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil || pod.UID != p.uid || pod.DeletionTimestamp != nil || finished(pod) {
			return err
		}
		_, err = c.writeReady(ctx, pod, corev1.ConditionTrue, "")
		return err
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
