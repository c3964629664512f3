package kind

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Pods are connected without a daemon: each node gives its pods addresses of its
// own subnet and is a router to them, and every node knows by a static route
// which other node is the way to which pods.

// place is where a node is in the network.
type place struct {
	node string
	ip   netip.Addr
	pods netip.Prefix // the addresses of its pods
}

// subnetOf is the addresses that the control plane has given a node for its pods.
func subnetOf(node *corev1.Node) (netip.Prefix, error) {
	if node.Spec.PodCIDR == "" {
		return netip.Prefix{}, fmt.Errorf("%s has no subnet for its pods yet", node.Name)
	}
	pods, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%s has the subnet %q for its pods: %w", node.Name, node.Spec.PodCIDR, err)
	}
	return pods, nil
}

// cniFile is the only network configuration that a node has in the end; whatever
// an image brings along is removed.
const cniFile = "/etc/cni/net.d/10-gauntlet.conflist"

// cniConfig is how a node connects its pods: a pair of interfaces for each, with
// an address of the node's subnet.
func cniConfig(p place) string {
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "gauntlet", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {
    "type": "host-local", "dataDir": "/run/cni-ipam-state",
    "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`, p.pods)
}

// wiring is the shell script that connects the pods of a node with those of all
// others. It may be run again, and is after a node was started again: routes do
// not outlive its container, and the others may have other addresses.
func wiring(here place, all []place) string {
	var s strings.Builder
	s.WriteString("set -e\n")
	for _, other := range all {
		if other.node != here.node {
			fmt.Fprintf(&s, "ip route replace %s via %s\n", other.pods, other.ip)
		}
	}
	// Towards the rest of the world a pod has its node's address; among pods
	// everyone sees who is who.
	rule := fmt.Sprintf("POSTROUTING -s %s ! -d %s -j MASQUERADE", here.pods, podSubnet)
	fmt.Fprintf(&s, "iptables -t nat -C %s 2>/dev/null || iptables -t nat -A %s\n", rule, rule)
	// Written last and in one step: from then on pods are started. containerd looks
	// again when a file in the directory changes its name, not when one comes in.
	fmt.Fprintf(&s, "mkdir -p %s\ncat >%s.new <<'END'\n%sEND\n", path.Dir(cniFile), cniFile, cniConfig(here))
	fmt.Fprintf(&s, "find %s -type f ! -path %s.new -delete\n", path.Dir(cniFile), cniFile)
	fmt.Fprintf(&s, "mv %s.new %s\n", cniFile, cniFile)
	return s.String()
}

// connectPods waits until every node has a subnet, and connects the pods of all
// nodes that are up.
func (c *Cluster) connectPods(ctx context.Context, client kubernetes.Interface) error {
	subnets, err := c.awaitSubnets(ctx, client)
	if err != nil {
		return err
	}
	var places []place
	for _, node := range c.nodes {
		if c.isDown(node) {
			continue
		}
		// The engine knows the address before the kubelet has told anybody.
		out, err := c.engine.run(ctx, engineAnswerMax, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", node)
		if err != nil {
			return fmt.Errorf("asking for the address of %s: %w", node, err)
		}
		ip, err := netip.ParseAddr(out)
		if err != nil {
			return fmt.Errorf("the engine says that %s has the address %q: %w", node, out, err)
		}
		places = append(places, place{node: node, ip: ip, pods: subnets[node]})
	}
	var all errgroup.Group
	for _, here := range places {
		all.Go(func() error {
			if _, err := c.engine.run(ctx, engineWorkMax, "exec", here.node, "sh", "-c", wiring(here, places)); err != nil {
				return fmt.Errorf("connecting the pods of %s: %w", here.node, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// awaitSubnets waits until every node has registered and has a subnet.
func (c *Cluster) awaitSubnets(ctx context.Context, client kubernetes.Interface) (map[string]netip.Prefix, error) {
	subnets := map[string]netip.Prefix{}
	err := poll(ctx, "the nodes' subnets", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(nodes.Items) != len(c.nodes) {
			return fmt.Errorf("%d of %d nodes have registered", len(nodes.Items), len(c.nodes))
		}
		for i := range nodes.Items {
			node := &nodes.Items[i]
			if subnets[node.Name], err = subnetOf(node); err != nil {
				return err
			}
		}
		return nil
	})
	return subnets, err
}
