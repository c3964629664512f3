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

// Poll calls condition immediately and then at every interval, until condition returns nil. If ctx
// is canceled first, Poll returns an error with the cause of the cancellation and the last error of
// condition. The error message begins with "waiting for " and the description.
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
			last = err // after a cancellation, err would only repeat that ctx is canceled
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last error: %w", description, context.Cause(ctx), last)
		}
	}
}

// NodeSchedulable returns an error with the reason if the scheduler cannot assign pods to the
// node. The node must be healthy (see [NodeHealthy]) and not cordoned.
func NodeSchedulable(node *corev1.Node) error {
	if err := NodeHealthy(node); err != nil {
		return err
	}
	if node.Spec.Unschedulable {
		return fmt.Errorf("node %s is cordoned", node.Name)
	}
	return nil
}

// NodeHealthy returns an error if the node is not Ready or has a taint of the node lifecycle
// controller. These taints have keys that begin with node.kubernetes.io/.
//
// It ignores a cordon, and taints that users set on purpose, such as the taint of a control
// plane node.
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

// PodCollapsed is the status.reason that the fault pod-churn writes in its action collapse. The
// fault sets the phase of the pod to Failed, but leaves its Ready condition True.
//
// Simulated kubelets would set the condition to False; they ignore pods with this reason.
const PodCollapsed = "Collapsed"
