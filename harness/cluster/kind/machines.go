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

// KillNode kills a node's container. The cluster has not failed then, and its
// health does not ask for that node.
func (c *Cluster) KillNode(ctx context.Context, node string) error {
	if err := c.expect(node, true); err != nil {
		return err
	}
	if _, err := c.engine.run(ctx, engineWorkMax, "kill", node); err != nil {
		return errors.Join(fmt.Errorf("killing the node %s: %w", node, err), c.expect(node, false))
	}
	return nil
}

// StartNode starts a node's container, connects its pods again, and waits until
// the node is well.
func (c *Cluster) StartNode(ctx context.Context, node string) error {
	if !c.isAway(node) {
		return nil
	}
	begun := time.Now()
	if c.isDown(node) {
		if _, err := c.engine.run(ctx, engineWorkMax, "start", node); err != nil {
			return fmt.Errorf("starting the node %s: %w", node, err)
		}
		c.setAway(node, true) // it still is when its container is up
		if err := c.watchNode(context.WithoutCancel(ctx), node); err != nil {
			return fmt.Errorf("starting the node %s: %w", node, err)
		}
	}
	if err := c.awaitSign(ctx, node, begun); err != nil {
		return err
	}
	return c.rejoin(ctx, node)
}

// rejoin connects the pods of a node whose kubelet was started again, and waits
// until it is well.
func (c *Cluster) rejoin(ctx context.Context, node string) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, mendWithin, fmt.Errorf("not within %s", mendWithin))
	defer cancel()
	if err := c.connectPods(bounded, client); err != nil {
		return err
	}
	return c.awaitBack(ctx, node)
}

// awaitBack waits until a node is well that was away.
func (c *Cluster) awaitBack(ctx context.Context, node string) error {
	if err := cluster.AwaitNode(ctx, c, node, pollInterval, mendWithin); err != nil {
		return err
	}
	c.setAway(node, false)
	return nil
}

// awaitSign waits until the kubelet of a node has been heard of: what the node says
// of itself may be from before it was lost.
func (c *Cluster) awaitSign(ctx context.Context, node string, since time.Time) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mendWithin, fmt.Errorf("not within %s", mendWithin))
	defer cancel()
	return poll(ctx, "a sign of life of "+node, func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if renewed := lease.Spec.RenewTime; renewed == nil || !renewed.After(since) {
			return fmt.Errorf("its lease is of %v", renewed)
		}
		return nil
	})
}

// The shell scripts that have a node's kernel drop all that comes from the cluster's
// network and all that goes there, its pods' own included, and let it pass again.
// Every node is on the network by its first interface.
const (
	cutOff = "set -e\n" +
		"iptables -w -t mangle -I PREROUTING -i eth0 -j DROP\n" +
		"iptables -w -t mangle -I POSTROUTING -o eth0 -j DROP\n"
	reconnect = "while iptables -w -t mangle -D PREROUTING -i eth0 -j DROP 2>/dev/null; do :; done\n" +
		"while iptables -w -t mangle -D POSTROUTING -o eth0 -j DROP 2>/dev/null; do :; done\n"
)

// CutOff has the node's own kernel drop every packet. The node is none of the
// cluster's health until it is reconnected.
func (c *Cluster) CutOff(ctx context.Context, node string) error {
	c.setAway(node, true)
	if err := c.execOn(ctx, node, "cutting off", cutOff); err != nil {
		return errors.Join(err, c.Reconnect(context.WithoutCancel(ctx), node))
	}
	return nil
}

// Reconnect lets packets pass again.
func (c *Cluster) Reconnect(ctx context.Context, node string) error {
	if !c.isAway(node) {
		return nil
	}
	begun := time.Now()
	if err := c.execOn(ctx, node, "reconnecting", reconnect); err != nil {
		return err
	}
	if err := c.awaitSign(ctx, node, begun); err != nil {
		return err
	}
	return c.awaitBack(ctx, node)
}

// execOn runs a shell script on a node.
func (c *Cluster) execOn(ctx context.Context, node, doing, script string) error {
	if _, err := c.engine.run(ctx, engineWorkMax, "exec", node, "sh", "-c", script); err != nil {
		return fmt.Errorf("%s the node %s: %w", doing, node, err)
	}
	return nil
}

// setAway says from now on whether a node is not expected to be well, though its
// container runs.
func (c *Cluster) setAway(node string, away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if away {
		c.away[node] = true
	} else {
		delete(c.away, node)
	}
}

// isAway reports whether a node is not expected to be well.
func (c *Cluster) isAway(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away[node] || c.watches[node] != nil && c.watches[node].down
}

// isDown reports whether a node's container is meant to be down.
func (c *Cluster) isDown(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[node]
	return w != nil && w.down
}

// expect says from now on whether the end of a node's container is meant.
func (c *Cluster) expect(node string, down bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[node]
	if w == nil {
		return fmt.Errorf("no node %q: expected one of %q", node, c.nodes)
	}
	w.down = down
	return nil
}
