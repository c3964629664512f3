package embedded

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Kubelets = (*Cluster)(nil)

// silentLabel is the label of nodes whose kubelet KWOK does not simulate at the moment.
// PauseKubelet sets the label, and ResumeKubelet removes it.
const silentLabel = "gauntlet/silent"

// PauseKubelet makes KWOK stop updating a node, its Lease and its pods. To other components, the
// node's kubelet then seems to be paused.
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

// Register creates the named Node object, if it does not exist, and waits until the node is
// healthy. The argument name is that of a deleted Node object, or of a new node such as node-5.
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

// retriggerAnnotation is a pod annotation that gauntlet changes to cause a watch event. On this
// event, KWOK processes the pod again.
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
	for i := range pods.Items {
		pod := &pods.Items[i]
		if isFinished(pod) {
			continue
		}
		if err := retrigger(ctx, client, pod); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("annotating pod %s/%s for KWOK: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// isFinished reports whether KWOK has nothing left to do for a pod. A pod with a deletionTimestamp
// is not finished. A Running pod is finished when it is Ready. A Failed or Succeeded pod is
// finished when KWOK has set its Ready condition to False.
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

// label sets or removes the label [silentLabel] of a node. The argument value is JSON: a quoted
// string sets the label, and null removes the label.
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
