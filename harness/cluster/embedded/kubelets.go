package embedded

import (
	"context"
	"fmt"

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
