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

// silentLabel is the node label that makes KWOK stop simulating the kubelet of a node.
const silentLabel = "gauntlet/silent"

// PauseKubelet makes KWOK stop updating a node, its Lease and its pods, as if the kubelet were paused.
func (c *Cluster) PauseKubelet(ctx context.Context, node string) error {
	return c.label(ctx, node, `"yes"`)
}

// ResumeKubelet undoes PauseKubelet on a node, and waits until the node is healthy.
func (c *Cluster) ResumeKubelet(ctx context.Context, node string) error {
	if err := c.label(ctx, node, "null"); err != nil {
		return err
	}
	return cluster.AwaitNode(ctx, c, node, pollInterval, recoveryTimeout)
}

// Register creates the Node object of a node that a fault has deleted, or of a new node. It then
// waits until the node is healthy.
func (c *Cluster) Register(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	var i int
	if _, err := fmt.Sscanf(name, nodeName, &i); err != nil || i < 1 || name != fmt.Sprintf(nodeName, i) {
		return fmt.Errorf("found the node name %q; expected a name of the form node-5", name)
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating node %s: %w", name, err)
	}
	return cluster.AwaitNode(ctx, c, name, pollInterval, recoveryTimeout)
}

// retriggerAnnotation is a pod annotation that gauntlet changes only to cause a watch event.
// KWOK then processes the pod again.
const retriggerAnnotation = "gauntlet/reminded"

// retriggerKWOK makes KWOK process all unfinished pods again after the control plane has
// restarted.
//
// KWOK retries a failed request only if the connection was refused. After any other error, it
// waits for the next watch event of the pod. Without such an event, the pod would stay Pending
// or Terminating forever.
func (c *Cluster) retriggerKWOK(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the pods that KWOK has to process: %w", err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, retriggerAnnotation, time.Now().Format(time.RFC3339Nano))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if isFinished(pod) {
			continue
		}
		_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("annotating pod %s/%s for KWOK: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// isFinished reports whether KWOK has no more work for a pod. This is so if the pod is Running
// and Ready, or has terminated and is not Ready.
func isFinished(pod *corev1.Pod) bool {
	ready := cluster.PodReady(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return false
	case pod.Status.Phase == corev1.PodRunning:
		return ready
	}
	terminated := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return terminated && !ready
}

// label sets the label [silentLabel] of a node, or removes it. The argument value is JSON: a
// quoted string, or null to remove the label.
func (c *Cluster) label(ctx context.Context, node, value string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, silentLabel, value)
	if _, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("labeling node %s: %w", node, err)
	}
	return nil
}
