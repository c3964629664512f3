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

// The functions in this file connect the pods of all nodes with static routes, without a network
// daemon. Each node has a route to the pod subnet of every other node, and forwards packets to its
// own pods.

// nodeNetwork contains the IP address of a node and the subnet of its pods. It determines the
// node's routes and CNI configuration.
type nodeNetwork struct {
	node string       // name of the node
	ip   netip.Addr   // address of the node in the container network
	pods netip.Prefix // address range of the pods on the node
}

// subnetOf parses a Node's spec.podCIDR, the IP address range of the pods on that node. If
// kube-controller-manager has not assigned a range yet, subnetOf returns an error.
func subnetOf(node *corev1.Node) (netip.Prefix, error) {
	if node.Spec.PodCIDR == "" {
		return netip.Prefix{}, fmt.Errorf("node %s has no pod subnet yet (spec.podCIDR)", node.Name)
	}
	pods, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("node %s has an invalid pod subnet %q (spec.podCIDR): %w", node.Name, node.Spec.PodCIDR, err)
	}
	return pods, nil
}

// cniFile is the path of the CNI configuration on a node. networkScript removes other CNI
// configurations that the node image may contain.
const cniFile = "/etc/cni/net.d/10-gauntlet.conflist"

// cniConfig returns the CNI configuration of a node, as JSON. The configuration gives each pod a
// veth pair and an IP address from the node's pod subnet.
func cniConfig(n nodeNetwork) string {
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "gauntlet", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {
    "type": "host-local", "dataDir": "/run/cni-ipam-state",
    "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`, n.pods)
}

// networkScript returns a shell script that configures the pod network on one node. The argument
// local describes this node. The script adds routes to the pods of all other nodes, and writes the
// CNI configuration.
//
// The script must run again after each restart of the node. A restart removes the routes, and may
// change the node's IP address. Running the script twice is harmless.
func networkScript(local nodeNetwork, all []nodeNetwork) string {
	var s strings.Builder
	s.WriteString("set -e\n")
	for _, other := range all {
		if other.node != local.node {
			fmt.Fprintf(&s, "ip route replace %s via %s\n", other.pods, other.ip)
		}
	}
	// Packets from a pod to another pod keep the pod's source address. Packets to all other
	// destinations get the node's address as the source address.
	rule := fmt.Sprintf("POSTROUTING -s %s ! -d %s -j MASQUERADE", local.pods, podSubnet)
	fmt.Fprintf(&s, "iptables -t nat -C %s 2>/dev/null || iptables -t nat -A %s\n", rule, rule)
	// The CNI configuration is written last, because pods can start as soon as it exists. The
	// script writes a temporary file and renames it, because containerd reacts to renamed files but
	// not to new files.
	fmt.Fprintf(&s, "mkdir -p %s\ncat >%s.new <<'END'\n%sEND\n", path.Dir(cniFile), cniFile, cniConfig(local))
	fmt.Fprintf(&s, "find %s -type f ! -path %s.new -delete\n", path.Dir(cniFile), cniFile)
	fmt.Fprintf(&s, "mv %s.new %s\n", cniFile, cniFile)
	return s.String()
}

// connectPods waits until every node has a pod subnet. It then configures the pod network on all
// nodes, except those that KillNode has killed.
func (c *Cluster) connectPods(ctx context.Context, client kubernetes.Interface) error {
	subnets, err := c.awaitSubnets(ctx, client)
	if err != nil {
		return err
	}
	var networks []nodeNetwork
	for _, node := range c.nodes {
		if c.isDown(node) {
			continue
		}
		// The container engine knows the IP address before the kubelet reports it in the Node
		// object.
		out, err := c.engine.run(ctx, engineQueryTimeout, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", node)
		if err != nil {
			return fmt.Errorf("reading the IP address of node %s: %w", node, err)
		}
		ip, err := netip.ParseAddr(out)
		if err != nil {
			return fmt.Errorf("the container engine reports an invalid IP address %q for node %s: %w", out, node, err)
		}
		networks = append(networks, nodeNetwork{node: node, ip: ip, pods: subnets[node]})
	}
	var all errgroup.Group
	for _, local := range networks {
		all.Go(func() error {
			if _, err := c.engine.run(ctx, engineChangeTimeout, "exec", local.node, "sh", "-c", networkScript(local, networks)); err != nil {
				return fmt.Errorf("configuring the pod network of node %s: %w", local.node, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// awaitSubnets waits until every node has a Node object with a pod subnet. It returns the pod
// subnets by node name.
func (c *Cluster) awaitSubnets(ctx context.Context, client kubernetes.Interface) (map[string]netip.Prefix, error) {
	subnets := map[string]netip.Prefix{}
	err := poll(ctx, "all nodes to have a pod subnet", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(nodes.Items) != len(c.nodes) {
			return fmt.Errorf("found %d Node objects; expected %d, one for each node of the kind cluster", len(nodes.Items), len(c.nodes))
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
