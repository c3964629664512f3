package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Poll calls condition at every interval until it returns nil. If ctx is canceled
// first, the error of Poll contains the cause and the last error of condition. The
// argument description completes the phrase "waiting for …" in that error.
func Poll(ctx context.Context, interval time.Duration, description string, condition func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := errors.New("the condition was not checked")
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // errors that the cancellation causes are irrelevant
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last error: %w", description, context.Cause(ctx), last)
		}
	}
}

// NodeSchedulable returns nil if the scheduler can assign pods to the node.
// The node must be healthy (see [NodeHealthy]) and not cordoned.
func NodeSchedulable(node *corev1.Node) error {
	if err := NodeHealthy(node); err != nil {
		return err
	}
	if node.Spec.Unschedulable {
		return fmt.Errorf("node %s is cordoned", node.Name)
	}
	return nil
}

// NodeHealthy returns nil if the node is Ready and has no taint of the node lifecycle controller.
// It ignores a cordon and taints with other prefixes, such as the one of a control
// plane node, because users set these on purpose.
func NodeHealthy(node *corev1.Node) error {
	if !Ready(node) {
		return fmt.Errorf("node %s is not Ready", node.Name)
	}
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") && taint.Key != corev1.TaintNodeUnschedulable {
			return fmt.Errorf("node %s still has taint %s", node.Name, taint.Key)
		}
	}
	return nil
}

// Ready reports whether the Ready condition of the node is True.
func Ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// PodReady reports whether the Ready condition of the pod is True.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// PodCollapsed is a status.reason that the pod-churn action collapse sets. Simulated
// kubelets do not change a pod with this reason, so the pod keeps its Ready condition
// although it has failed.
const PodCollapsed = "Collapsed"
