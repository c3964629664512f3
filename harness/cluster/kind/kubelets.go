package kind

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Kubelets = (*Cluster)(nil)

// Silence freezes the kubelet of a node. The node is none of the cluster's health
// until it is woken.
func (c *Cluster) Silence(ctx context.Context, node string) error {
	c.setAway(node, true)
	if err := c.tellKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGSTOP"); err != nil {
		c.setAway(node, false)
		return err
	}
	return nil
}

// Wake lets the kubelet go on, and waits until its node is well.
func (c *Cluster) Wake(ctx context.Context, node string) error {
	if err := c.tellKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGCONT"); err != nil {
		return err
	}
	return c.awaitBack(ctx, node)
}

// Register starts the kubelet of a node again that is gone, which is when it
// registers, and connects its pods: they get another subnet.
func (c *Cluster) Register(ctx context.Context, node string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		err = c.tellKubelet(ctx, node, "restart")
	}
	if err != nil {
		return err
	}
	return c.rejoin(ctx, node)
}

// tellKubelet has systemd do something to the kubelet of a node.
func (c *Cluster) tellKubelet(ctx context.Context, node string, what ...string) error {
	command := append([]string{"exec", node, "systemctl"}, what...)
	if _, err := c.engine.run(ctx, engineWorkMax, append(command, "kubelet")...); err != nil {
		return fmt.Errorf("the kubelet of %s: %w", node, err)
	}
	return nil
}
