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

// The pod network works without a daemon. Each node is a router for the addresses in
// its pod subnet and has a static route to the pod subnet of every other node.

// nodeNetwork contains the addresses of a node.
type nodeNetwork struct {
	node string
	ip   netip.Addr
	pods netip.Prefix // the pod subnet
}

// subnetOf returns the pod subnet that kube-controller-manager has assigned to a node.
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

// cniFile is the path of the CNI configuration on a node. gauntlet removes all other
// CNI configurations that the node image contains.
const cniFile = "/etc/cni/net.d/10-gauntlet.conflist"

// cniConfig returns the CNI configuration of a node.
// Each pod has a pair of interfaces and an address from the pod subnet of the node.
func cniConfig(n nodeNetwork) string {
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "gauntlet", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {
    "type": "host-local", "dataDir": "/run/cni-ipam-state",
    "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`, n.pods)
}

// networkScript returns the shell script that connects the pods of a node with all other pods.
// It is idempotent. It runs again after a node was restarted, because routes do not
// survive a restart and the addresses of other nodes may change.
func networkScript(local nodeNetwork, all []nodeNetwork) string {
	var s strings.Builder
	s.WriteString("set -e\n")
	for _, other := range all {
		if other.node != local.node {
			fmt.Fprintf(&s, "ip route replace %s via %s\n", other.pods, other.ip)
		}
	}
	// Connections to other destinations than pods get the address of the node as their
	// source. Connections between pods retain the source address of the pod.
	rule := fmt.Sprintf("POSTROUTING -s %s ! -d %s -j MASQUERADE", local.pods, podSubnet)
	fmt.Fprintf(&s, "iptables -t nat -C %s 2>/dev/null || iptables -t nat -A %s\n", rule, rule)
	// The configuration is last, because pods start as soon as it exists. It is renamed
	// into place, because containerd reacts to the rename of a file, not to a new file.
	fmt.Fprintf(&s, "mkdir -p %s\ncat >%s.new <<'END'\n%sEND\n", path.Dir(cniFile), cniFile, cniConfig(local))
	fmt.Fprintf(&s, "find %s -type f ! -path %s.new -delete\n", path.Dir(cniFile), cniFile)
	fmt.Fprintf(&s, "mv %s.new %s\n", cniFile, cniFile)
	return s.String()
}

// connectPods waits until every node has a pod subnet and configures the pod network of all running nodes.
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
		// The container engine has the address before the kubelet reports it.
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

// awaitSubnets waits until every node has registered and has a pod subnet.
func (c *Cluster) awaitSubnets(ctx context.Context, client kubernetes.Interface) (map[string]netip.Prefix, error) {
	subnets := map[string]netip.Prefix{}
	err := poll(ctx, "the pod subnets of all nodes", func(ctx context.Context) error {
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
