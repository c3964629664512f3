package embedded

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Kubelets = (*Cluster)(nil)

// silentLabel on a node keeps KWOK from playing its kubelet.
const silentLabel = "gauntlet/silent"

// Silence has KWOK leave a node, its lease and its pods alone.
func (c *Cluster) Silence(ctx context.Context, node string) error {
	return c.label(ctx, node, `"yes"`)
}

// Wake has KWOK go on, and waits until the node is well.
func (c *Cluster) Wake(ctx context.Context, node string) error {
	if err := c.label(ctx, node, "null"); err != nil {
		return err
	}
	return cluster.AwaitNode(ctx, c, node, pollInterval, mendWithin)
}

// Register makes a node again that was deleted, and waits until it is well.
func (c *Cluster) Register(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	var i int
	if _, err := fmt.Sscanf(name, nodeName, &i); err != nil {
		return fmt.Errorf("no node %q: expected one of %s", name, nodeName)
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering the node %s: %w", name, err)
	}
	return cluster.AwaitNode(ctx, c, name, pollInterval, mendWithin)
}

// remindedAnnotation on a pod makes KWOK look at it again.
const remindedAnnotation = "gauntlet/reminded"

// remind has KWOK go on with the pods that wait for something. A change of a pod
// that fails otherwise than by a connection refused, as one may that is under way
// when the API server or etcd ends, it gives up until there is news of the pod: it
// would be Pending, or on its way out, for ever.
func (c *Cluster) remind(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for pods that wait for KWOK: %w", err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, remindedAnnotation, time.Now().Format(time.RFC3339Nano))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if atRest(pod) {
			continue
		}
		_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reminding KWOK of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// atRest reports whether a kubelet has nothing to do about a pod of its own accord.
func atRest(pod *corev1.Pod) bool {
	ready := cluster.PodReady(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return false
	case pod.Status.Phase == corev1.PodRunning:
		return ready
	}
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return ended && !ready
}

// label gives a node the label [silentLabel] of a value in JSON; null takes it away.
func (c *Cluster) label(ctx context.Context, node, value string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, silentLabel, value)
	if _, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("labelling the node %s: %w", node, err)
	}
	return nil
}
