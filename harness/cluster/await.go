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

// Poll looks, at every interval, until look gives no error. When ctx ends first,
// the error is why ctx ended and what the last look found.
func Poll(ctx context.Context, interval time.Duration, what string, look func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := errors.New("nothing yet")
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // and not that the look was cut short
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w", what, context.Cause(ctx), last)
		}
	}
}

// NodeSchedulable is nil when pods can be scheduled to the node: it is well, and nobody
// has cordoned it.
func NodeSchedulable(node *corev1.Node) error {
	if err := NodeHealthy(node); err != nil {
		return err
	}
	if node.Spec.Unschedulable {
		return fmt.Errorf("%s is cordoned", node.Name)
	}
	return nil
}

// NodeHealthy is nil when the node is Ready and the node controller has seen so and
// taken its taints away. What keeps pods away on purpose does not count: taints that
// say what a node is for, as that of a control plane, and a cordon.
func NodeHealthy(node *corev1.Node) error {
	if !Ready(node) {
		return fmt.Errorf("%s is not Ready", node.Name)
	}
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") && taint.Key != corev1.TaintNodeUnschedulable {
			return fmt.Errorf("%s is still tainted %s", node.Name, taint.Key)
		}
	}
	return nil
}

// Ready reports whether a node's kubelet says, and the node controller believes,
// that it is.
func Ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// PodReady reports whether a pod's kubelet says that it is ready.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// PodCollapsed is the reason in the status of a pod that has failed and is to stay as it is
// said to be: who plays the kubelets must not take its readiness away.
const PodCollapsed = "Collapsed"
