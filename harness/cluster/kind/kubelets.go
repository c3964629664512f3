package kind

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Kubelets = (*Cluster)(nil)

// Silence freezes the kubelet of a node. The node is none of the cluster's health
// until it is woken.
func (c *Cluster) Silence(ctx context.Context, node string) error {
	c.setSilent(node, true)
	if err := c.tellKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGSTOP"); err != nil {
		c.setSilent(node, false)
		return err
	}
	return nil
}

// Wake lets the kubelet go on, and waits until its node is well.
func (c *Cluster) Wake(ctx context.Context, node string) error {
	if err := c.tellKubelet(ctx, node, "kill", "--kill-who=main", "--signal=SIGCONT"); err != nil {
		return err
	}
	if err := cluster.AwaitNode(ctx, c, node, pollInterval, mendWithin); err != nil {
		return err
	}
	c.setSilent(node, false)
	return nil
}

// Register starts the kubelet of a node again, which is when it registers, and
// connects its pods: they get another subnet.
func (c *Cluster) Register(ctx context.Context, node string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	if err := c.tellKubelet(ctx, node, "restart"); err != nil {
		return err
	}
	if err := c.connectPods(ctx, client); err != nil {
		return err
	}
	return cluster.AwaitNode(ctx, c, node, pollInterval, mendWithin)
}

// tellKubelet has systemd do something to the kubelet of a node.
func (c *Cluster) tellKubelet(ctx context.Context, node string, what ...string) error {
	command := append([]string{"exec", node, "systemctl"}, what...)
	if _, err := c.engine.run(ctx, engineWorkMax, append(command, "kubelet")...); err != nil {
		return fmt.Errorf("the kubelet of %s: %w", node, err)
	}
	return nil
}

func (c *Cluster) setSilent(node string, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if silent {
		c.silent[node] = true
	} else {
		delete(c.silent, node)
	}
}

// isAway reports whether a node is not expected to be well: it is meant to be down,
// or its kubelet to be silent.
func (c *Cluster) isAway(node string) bool {
	if c.isDown(node) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent[node]
}
