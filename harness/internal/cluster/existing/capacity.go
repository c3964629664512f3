package existing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// checkCapacity returns nil if the schedulable nodes have free capacity for the given number of
// pods. Too little free capacity is an error that wraps [cluster.ErrNoCapacity]. If no node is
// schedulable, the error says why.
func checkCapacity(ctx context.Context, admin kubernetes.Interface, pods int) error {
	nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("existing cluster: listing the nodes: %w", err)
	}
	existingPods, err := admin.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		return fmt.Errorf("existing cluster: listing the pods of all namespaces: %w", err)
	}
	free, err := freeCapacity(nodes.Items, existingPods.Items)
	switch {
	case err != nil:
		return fmt.Errorf("existing cluster: found no schedulable node; expected at least one: %w", err)
	case free < pods:
		return fmt.Errorf("%w: the run needs up to %d pods, the nodes have capacity for %d more", cluster.ErrNoCapacity, pods, free)
	}
	return nil
}

// freeCapacity returns how many more pods the schedulable nodes can run.
//
// The result is the sum of status.allocatable.pods, minus the existing pods on these nodes. If no
// node is schedulable, the error contains the reason for one of the nodes.
func freeCapacity(nodes []corev1.Node, existingPods []corev1.Pod) (int, error) {
	problem := errors.New("the cluster has no nodes")
	capacity := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		taint := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
		switch err := cluster.NodeSchedulable(n); {
		case err != nil:
			problem = err
		case taint >= 0:
			problem = fmt.Errorf("node %s has taint %s", n.Name, n.Spec.Taints[taint].Key)
		default:
			capacity[n.Name] = int(n.Status.Allocatable.Pods().Value())
		}
	}
	if len(capacity) == 0 {
		return 0, problem
	}
	free := 0
	for i := range existingPods {
		if _, ok := capacity[existingPods[i].Spec.NodeName]; ok {
			free--
		}
	}
	for _, pods := range capacity {
		free += pods
	}
	return free, nil
}
