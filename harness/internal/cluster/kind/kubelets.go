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

// Silence pauses the kubelet of a node. Health ignores the node until Wake.
func (c *Cluster) Silence(ctx context.Context, node string) error {
	c.setUnreachable(node, true)
	if err := c.systemctlKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGSTOP"); err != nil {
		c.setUnreachable(node, false)
		return err
	}
	return nil
}

// Wake resumes a paused kubelet and waits until its node is healthy.
func (c *Cluster) Wake(ctx context.Context, node string) error {
	if err := c.systemctlKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGCONT"); err != nil {
		return err
	}
	return c.awaitNodeHealthy(ctx, node)
}

// Register restarts the kubelet if the Node object was deleted, because a kubelet registers only at its start.
// It then configures the pod network again, because the node gets another pod subnet.
func (c *Cluster) Register(ctx context.Context, node string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		err = c.systemctlKubelet(ctx, node, "restart")
	}
	if err != nil {
		return err
	}
	return c.rejoin(ctx, node)
}

// systemctlKubelet runs a systemctl command for the kubelet of a node.
func (c *Cluster) systemctlKubelet(ctx context.Context, node string, args ...string) error {
	command := append([]string{"exec", node, "systemctl"}, args...)
	if _, err := c.engine.run(ctx, engineChangeTimeout, append(command, "kubelet")...); err != nil {
		return fmt.Errorf("kubelet of node %s: systemctl %s: %w", node, args[0], err)
	}
	return nil
}
