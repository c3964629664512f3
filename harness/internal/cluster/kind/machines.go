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

// KillNode kills the container of a node, as a power failure does. The channel that Failed returns
// stays open, because a fault causes this exit. Health ignores the node until StartNode.
func (c *Cluster) KillNode(ctx context.Context, node string) error {
	if err := c.setDown(node, true); err != nil {
		return err
	}
	if _, err := c.engine.run(ctx, engineChangeTimeout, "kill", node); err != nil {
		return errors.Join(fmt.Errorf("killing node %s: %w", node, err), c.setDown(node, false))
	}
	return nil
}

// StartNode starts the container of a node that KillNode has killed. It configures the pod network
// again and waits until the node is healthy.
//
// If no fault has killed, paused or cut off the node, StartNode does nothing.
func (c *Cluster) StartNode(ctx context.Context, node string) error {
	if !c.isUnavailable(node) {
		return nil
	}
	started := time.Now()
	if c.isDown(node) {
		if _, err := c.engine.run(ctx, engineChangeTimeout, "start", node); err != nil {
			return fmt.Errorf("starting node %s: %w", node, err)
		}
		c.setUnreachable(node, true) // Health must ignore the node until its kubelet runs
		if err := c.watchNode(context.WithoutCancel(ctx), node); err != nil {
			return fmt.Errorf("starting node %s: %w", node, err)
		}
	}
	if err := c.awaitHeartbeat(ctx, node, started); err != nil {
		return err
	}
	return c.rejoin(ctx, node)
}

// rejoin configures the pod network of all nodes again and waits until the named node is healthy.
// Callers call rejoin after the kubelet of that node has restarted.
func (c *Cluster) rejoin(ctx context.Context, node string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("the pod network did not recover within %s", recoveryTimeout))
	defer cancel()
	if err := c.connectPods(bounded, client); err != nil {
		return err
	}
	return c.awaitNodeHealthy(ctx, node)
}

// awaitNodeHealthy waits until a node is healthy, and then makes [Cluster.Health] check the node
// again.
func (c *Cluster) awaitNodeHealthy(ctx context.Context, node string) error {
	if err := cluster.AwaitNode(ctx, c, node, pollInterval, recoveryTimeout); err != nil {
		return err
	}
	c.setUnreachable(node, false)
	return nil
}

// awaitHeartbeat waits until the kubelet of a node has renewed the node's Lease. The time of the
// renewal must be later than the argument since.
//
// A renewed Lease shows that the kubelet works. The conditions of the Node object may still have
// their values from before the fault.
func (c *Cluster) awaitHeartbeat(ctx context.Context, node string, since time.Time) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("the kubelet of node %s did not renew the Lease of the node within %s", node, recoveryTimeout))
	defer cancel()
	return poll(ctx, "the kubelet of node "+node+" to renew its Lease", func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if renewed := lease.Spec.RenewTime; renewed == nil || !renewed.After(since) {
			return fmt.Errorf("lease %s/%s was last renewed at %v; expected a renewal after %v", corev1.NamespaceNodeLease, node, renewed, since)
		}
		return nil
	})
}

// cutOff is a shell script that makes a node drop all packets on its network interface eth0. This
// interface connects the node and its pods with all other nodes.
//
// reconnect is a shell script that removes the iptables rules of cutOff.
const (
	cutOff = "set -e\n" +
		"iptables -w -t mangle -I PREROUTING -i eth0 -j DROP\n" +
		"iptables -w -t mangle -I POSTROUTING -o eth0 -j DROP\n"
	reconnect = "while iptables -w -t mangle -D PREROUTING -i eth0 -j DROP 2>/dev/null; do :; done\n" +
		"while iptables -w -t mangle -D POSTROUTING -o eth0 -j DROP 2>/dev/null; do :; done\n"
)

// CutOff makes a node drop all packets to and from other nodes. A worker's kubelet then has no
// connection to the API server. [Cluster.Health] ignores the node until Reconnect.
func (c *Cluster) CutOff(ctx context.Context, node string) error {
	c.setUnreachable(node, true)
	if err := c.execOn(ctx, node, "cutting off", cutOff); err != nil {
		return errors.Join(err, c.Reconnect(context.WithoutCancel(ctx), node))
	}
	return nil
}

// Reconnect undoes [Cluster.CutOff] and waits until the node is healthy. If no fault has killed,
// paused or cut off the node, Reconnect does nothing.
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

// execOn runs a shell script on a node. The argument action says what the script does, such as
// "cutting off". If the script fails, the error message begins with this text.
func (c *Cluster) execOn(ctx context.Context, node, action, script string) error {
	if _, err := c.engine.run(ctx, engineChangeTimeout, "exec", node, "sh", "-c", script); err != nil {
		return fmt.Errorf("%s node %s: %w", action, node, err)
	}
	return nil
}

// setUnreachable stores whether [Cluster.Health] must ignore a node although its container runs.
// The reason is a fault that has paused, cut off or restarted the node.
func (c *Cluster) setUnreachable(node string, unreachable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if unreachable {
		c.unreachable[node] = true
	} else {
		delete(c.unreachable, node)
	}
}

// isUnavailable reports whether a fault has killed, paused or cut off a node. [Cluster.Health]
// ignores such a node.
func (c *Cluster) isUnavailable(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unreachable[node] || c.watches[node] != nil && c.watches[node].down
}

// isDown reports whether KillNode has killed the container of a node and StartNode has not started
// it again.
func (c *Cluster) isDown(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[node]
	return w != nil && w.down
}

// setDown stores whether KillNode has killed the container of a node. It returns an error if the
// cluster has no such node.
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
