package e2eframework

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// nodeProvider adds methods to provider that list, start and stop nodes. Only providers of embedded
// and kind clusters have these methods.
type nodeProvider struct{ provider }

// ListNode returns the nodes of the cluster. The field State of a node is "Ready" or "NotReady".
// Any further arguments have no effect.
func (p *nodeProvider) ListNode(ctx context.Context, _ ...string) ([]support.Node, error) {
	if err := p.created(); err != nil {
		return nil, err
	}
	list, err := p.environment.Admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of cluster %s: %w", p.clusterName, err)
	}
	var nodes []support.Node
	for _, item := range list.Items {
		node := support.Node{Name: item.Name, Role: "worker", Cluster: p.clusterName, State: "NotReady"}
		if _, ok := item.Labels["node-role.kubernetes.io/control-plane"]; ok {
			node.Role = "control-plane"
		}
		for _, c := range item.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				node.State = "Ready"
			}
		}
		for _, a := range item.Status.Addresses {
			if a.Type == corev1.NodeInternalIP && node.IP == nil {
				node.IP = net.ParseIP(a.Address)
			}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// StopNode stops a node at once, as a power failure does. In an embedded cluster, StopNode only
// pauses the simulated kubelet.
func (p *nodeProvider) StopNode(ctx context.Context, node *support.Node, _ ...string) error {
	if err := p.created(); err != nil {
		return err
	}
	switch c := p.environment.Cluster.(type) {
	case cluster.Machines:
		return c.KillNode(ctx, node.Name)
	case cluster.Kubelets:
		return c.PauseKubelet(ctx, node.Name)
	}
	return p.unsupported("stop", node)
}

// StartNode starts a node that StopNode has stopped, and returns when the node is healthy.
func (p *nodeProvider) StartNode(ctx context.Context, node *support.Node, _ ...string) error {
	if err := p.created(); err != nil {
		return err
	}
	switch c := p.environment.Cluster.(type) {
	case cluster.Machines:
		return c.StartNode(ctx, node.Name)
	case cluster.Kubelets:
		return c.ResumeKubelet(ctx, node.Name)
	}
	return p.unsupported("start", node)
}

// AddNode always returns an error, because the number of nodes is fixed at Create; see [WithNodes].
func (p *nodeProvider) AddNode(_ context.Context, node *support.Node, _ ...string) error {
	return p.unsupported("add", node)
}

// RemoveNode always returns an error, because the number of nodes is fixed at Create; see
// [WithNodes].
func (p *nodeProvider) RemoveNode(_ context.Context, node *support.Node, _ ...string) error {
	return p.unsupported("remove", node)
}

func (p *nodeProvider) unsupported(operation string, node *support.Node) error {
	return fmt.Errorf("%s node %s: provider %s cannot change the number of nodes after Create; use WithNodes", operation, node.Name, p.name)
}

// embeddedProvider is the type of providers that [NewEmbedded] returns.
type embeddedProvider struct{ nodeProvider }

// LoadImage does nothing, because an embedded cluster runs no containers.
func (*embeddedProvider) LoadImage(context.Context, string, ...string) error { return nil }

// LoadImageArchive does nothing, because an embedded cluster runs no containers.
func (*embeddedProvider) LoadImageArchive(context.Context, string, ...string) error { return nil }

// AddNode adds a node with a simulated kubelet, and returns when the node is healthy. The node's
// name must be "node-" and a number, such as node-5.
func (p *embeddedProvider) AddNode(ctx context.Context, node *support.Node, _ ...string) error {
	nodes, err := p.ListNode(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(nodes, func(n support.Node) bool { return n.Name == node.Name }) {
		return fmt.Errorf("add node %s: the node exists already", node.Name)
	}
	kubelets, ok := p.environment.Cluster.(cluster.Kubelets)
	if !ok {
		return p.unsupported("add", node)
	}
	if err := kubelets.Register(ctx, node.Name); err != nil {
		return fmt.Errorf("add node %s: %w", node.Name, err)
	}
	return nil
}

// RemoveNode deletes a Node object. The pod garbage collector then deletes the pods on that node.
func (p *embeddedProvider) RemoveNode(ctx context.Context, node *support.Node, _ ...string) error {
	if err := p.created(); err != nil {
		return err
	}
	if err := p.environment.Admin.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("remove node %s: %w", node.Name, err)
	}
	return nil
}

// kindProvider is the type of providers that [NewKind] returns.
type kindProvider struct{ nodeProvider }

// LoadImage loads an image from the local container engine onto all nodes. Any further arguments
// have no effect.
func (p *kindProvider) LoadImage(ctx context.Context, image string, _ ...string) error {
	nodes, err := p.access()
	if err != nil {
		return err
	}
	archive := filepath.Join(p.environment.StateDir, "e2e-image.tar")
	defer os.Remove(archive)
	found, err := nodes.SaveImage(ctx, image, archive)
	if err != nil {
		return fmt.Errorf("loading image %s: %w", image, err)
	}
	if !found {
		return fmt.Errorf("loading image %s: the container engine does not have this image; build or pull the image first", image)
	}
	return p.LoadImageArchive(ctx, archive)
}

// LoadImageArchive loads all images of a `docker save` archive onto all nodes. Any further
// arguments have no effect.
func (p *kindProvider) LoadImageArchive(ctx context.Context, archive string, _ ...string) error {
	nodes, err := p.access()
	if err != nil {
		return err
	}
	all := map[string]cluster.Node{nodes.ControlPlane().Name(): nodes.ControlPlane()}
	for _, node := range nodes.Workers() {
		all[node.Name()] = node
	}
	for name, node := range all {
		if err := node.LoadImage(ctx, archive); err != nil {
			return fmt.Errorf("loading image archive %s onto node %s: %w", archive, name, err)
		}
	}
	return nil
}

// access returns the cluster as a NodeAccess, which loads images onto nodes. It returns an error
// before Create.
func (p *kindProvider) access() (cluster.NodeAccess, error) {
	if err := p.created(); err != nil {
		return nil, err
	}
	nodes, ok := p.environment.Cluster.(cluster.NodeAccess)
	if !ok {
		return nil, fmt.Errorf("cluster %s: cannot load images onto the nodes: found a cluster of type %T; expected a cluster that implements cluster.NodeAccess", p.clusterName, p.environment.Cluster)
	}
	return nodes, nil
}
