package kind

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Machines = (*Cluster)(nil)

// KillNode kills the container of a node. This is not a failure of the cluster.
// Health ignores the node until StartNode.
func (c *Cluster) KillNode(ctx context.Context, node string) error {
	if err := c.setDown(node, true); err != nil {
		return err
	}
	if _, err := c.engine.run(ctx, engineChangeTimeout, "kill", node); err != nil {
		return errors.Join(fmt.Errorf("killing node %s: %w", node, err), c.setDown(node, false))
	}
	return nil
}

// StartNode starts the container of a node, configures its pod network, and waits until the node is healthy.
func (c *Cluster) StartNode(ctx context.Context, node string) error {
	if !c.isUnavailable(node) {
		return nil
	}
	started := time.Now()
	if c.isDown(node) {
		if _, err := c.engine.run(ctx, engineChangeTimeout, "start", node); err != nil {
			return fmt.Errorf("starting node %s: %w", node, err)
		}
		c.setUnreachable(node, true) // the container runs, but the node is not yet healthy
		if err := c.watchNode(context.WithoutCancel(ctx), node); err != nil {
			return fmt.Errorf("starting node %s: %w", node, err)
		}
	}
	if err := c.awaitHeartbeat(ctx, node, started); err != nil {
		return err
	}
	return c.rejoin(ctx, node)
}

// rejoin connects a node to the cluster again after a restart of its kubelet. It
// configures the pod network and waits until the node is healthy.
func (c *Cluster) rejoin(ctx context.Context, node string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("timed out after %s", recoveryTimeout))
	defer cancel()
	if err := c.connectPods(bounded, client); err != nil {
		return err
	}
	return c.awaitNodeHealthy(ctx, node)
}

// awaitNodeHealthy waits until a node is healthy. After that, Health checks this node
// again.
func (c *Cluster) awaitNodeHealthy(ctx context.Context, node string) error {
	if err := cluster.AwaitNode(ctx, c, node, pollInterval, recoveryTimeout); err != nil {
		return err
	}
	c.setUnreachable(node, false)
	return nil
}

// awaitHeartbeat waits until the kubelet has renewed the Lease of its node after the
// given time. The wait is necessary because the Node object may still contain the
// conditions from before the failure.
func (c *Cluster) awaitHeartbeat(ctx context.Context, node string, since time.Time) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("timed out after %s", recoveryTimeout))
	defer cancel()
	return poll(ctx, "a heartbeat of node "+node, func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if renewed := lease.Spec.RenewTime; renewed == nil || !renewed.After(since) {
			return fmt.Errorf("lease %s/%s was last renewed at %v", corev1.NamespaceNodeLease, node, renewed)
		}
		return nil
	})
}

// The shell script cutOff makes a node drop all packets to and from the cluster network.
// This includes the packets of its pods. The script reconnect undoes it. The interface is
// eth0 on every node.
const (
	cutOff = "set -e\n" +
		"iptables -w -t mangle -I PREROUTING -i eth0 -j DROP\n" +
		"iptables -w -t mangle -I POSTROUTING -o eth0 -j DROP\n"
	reconnect = "while iptables -w -t mangle -D PREROUTING -i eth0 -j DROP 2>/dev/null; do :; done\n" +
		"while iptables -w -t mangle -D POSTROUTING -o eth0 -j DROP 2>/dev/null; do :; done\n"
)

// CutOff makes the kernel of a node drop all packets. Health ignores the node until Reconnect.
func (c *Cluster) CutOff(ctx context.Context, node string) error {
	c.setUnreachable(node, true)
	if err := c.execOn(ctx, node, "cutting off", cutOff); err != nil {
		return errors.Join(err, c.Reconnect(context.WithoutCancel(ctx), node))
	}
	return nil
}

// Reconnect undoes CutOff and waits until the node is healthy.
func (c *Cluster) Reconnect(ctx context.Context, node string) error {
	if !c.isUnavailable(node) {
		return nil
	}
	started := time.Now()
	if err := c.execOn(ctx, node, "reconnecting", reconnect); err != nil {
		return err
	}
	if err := c.awaitHeartbeat(ctx, node, started); err != nil {
		return err
	}
	return c.awaitNodeHealthy(ctx, node)
}

// execOn runs a shell script on a node. action describes it in an error.
func (c *Cluster) execOn(ctx context.Context, node, action, script string) error {
	if _, err := c.engine.run(ctx, engineChangeTimeout, "exec", node, "sh", "-c", script); err != nil {
		return fmt.Errorf("%s node %s: %w", action, node, err)
	}
	return nil
}

// setUnreachable sets whether a node whose container runs is unreachable on purpose.
func (c *Cluster) setUnreachable(node string, unreachable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if unreachable {
		c.unreachable[node] = true
	} else {
		delete(c.unreachable, node)
	}
}

// isUnavailable reports whether a node is unreachable or down on purpose.
func (c *Cluster) isUnavailable(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unreachable[node] || c.watches[node] != nil && c.watches[node].down
}

// isDown reports whether the container of a node is down on purpose.
func (c *Cluster) isDown(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[node]
	return w != nil && w.down
}

// setDown sets whether the container of a node is down on purpose.
func (c *Cluster) setDown(node string, down bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[node]
	if w == nil {
		return fmt.Errorf("node %q does not exist: expected one of %q", node, c.nodes)
	}
	w.down = down
	return nil
}
