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

// PauseKubelet pauses the kubelet of a node with SIGSTOP. [Cluster.Health] ignores the node until
// the call of ResumeKubelet.
func (c *Cluster) PauseKubelet(ctx context.Context, node string) error {
	c.setUnreachable(node, true)
	if err := c.systemctlKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGSTOP"); err != nil {
		c.setUnreachable(node, false)
		return err
	}
	return nil
}

// ResumeKubelet resumes the paused kubelet of a node and waits until the node is healthy.
func (c *Cluster) ResumeKubelet(ctx context.Context, node string) error {
	if err := c.systemctlKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGCONT"); err != nil {
		return err
	}
	return c.awaitNodeHealthy(ctx, node)
}

// Register restarts a node's kubelet if the Node object was deleted, and waits until the node is
// healthy. The restart is necessary because a kubelet creates its Node object only at its start.
//
// Register also configures the pod network again, because the new Node object gets another pod
// subnet.
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

// systemctlKubelet runs the command `systemctl ARGS kubelet` on a node, where ARGS are the
// arguments args.
func (c *Cluster) systemctlKubelet(ctx context.Context, node string, args ...string) error {
	command := append([]string{"exec", node, "systemctl"}, args...)
	if _, err := c.engine.run(ctx, engineChangeTimeout, append(command, "kubelet")...); err != nil {
		return fmt.Errorf("running `systemctl %s kubelet` on node %s: %w", args[0], node, err)
	}
	return nil
}
