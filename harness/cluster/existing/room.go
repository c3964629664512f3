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

// ErrNoRoom says that a cluster's nodes do not take as many pods as a run has.
var ErrNoRoom = errors.New("there is no room for the pods")

// takesPods is nil when there are nodes for so many pods.
func takesPods(ctx context.Context, admin kubernetes.Interface, pods int) error {
	nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("asking for the nodes: %w", err)
	}
	there, err := admin.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		return fmt.Errorf("asking for the pods: %w", err)
	}
	room, problem := room(nodes.Items, there.Items)
	switch {
	case problem != nil:
		return fmt.Errorf("expected a node that takes pods: %w", problem)
	case room < pods:
		return fmt.Errorf("%w: up to %d at once, and its nodes take %d more", ErrNoRoom, pods, room)
	}
	return nil
}

// room is how many more pods the nodes take, or why none of them takes any.
func room(nodes []corev1.Node, there []corev1.Pod) (int, error) {
	problem := errors.New("there are none")
	free := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		taint := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
		switch err := cluster.NodeSchedulable(n); {
		case err != nil:
			problem = err
		case taint >= 0:
			problem = fmt.Errorf("%s is tainted %s", n.Name, n.Spec.Taints[taint].Key)
		default:
			free[n.Name] = int(n.Status.Allocatable.Pods().Value())
		}
	}
	if len(free) == 0 {
		return 0, problem
	}
	total := 0
	for i := range there {
		if _, ok := free[there[i].Spec.NodeName]; ok {
			total--
		}
	}
	for _, pods := range free {
		total += pods
	}
	return total, nil
}
