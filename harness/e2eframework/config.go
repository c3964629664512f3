package e2eframework

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// kindConfig has the fields of a kind configuration file that the providers accept.
type kindConfig struct {
	APIVersion              string     `json:"apiVersion"`
	Kind                    string     `json:"kind"`
	Name                    string     `json:"name"`
	ContainerdConfigPatches []string   `json:"containerdConfigPatches"`
	Nodes                   []kindNode `json:"nodes"`
}

// kindNode has the fields of a node in a kind configuration file that the providers accept.
type kindNode struct {
	Role              v1alpha4.NodeRole      `json:"role"`
	Image             string                 `json:"image"`
	Labels            map[string]string      `json:"labels"`
	ExtraMounts       []v1alpha4.Mount       `json:"extraMounts"`
	ExtraPortMappings []v1alpha4.PortMapping `json:"extraPortMappings"`
}

// CreateWithConfig starts the cluster with the nodes in a kind configuration file. An empty path
// means the same as Create.
//
// Of a node, the role and the labels have an effect. On a kind cluster, the mounts, the port
// mappings and containerdConfigPatches also have one. The name and the image of a node never have
// an effect; see WithName and [WithNodeImage]. It returns an error for all other fields.
func (p *provider) CreateWithConfig(ctx context.Context, path string) (string, error) {
	if path == "" {
		return p.Create(ctx)
	}
	data, err := inputfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("reading the configuration of cluster %s: %w", p.clusterName, err)
	}
	config, err := parseKindConfig(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	p.nodes, p.containerdPatches, p.kindNodes = max(len(config.Nodes)-1, 1), config.ContainerdConfigPatches, nil
	for _, node := range config.Nodes {
		p.kindNodes = append(p.kindNodes, v1alpha4.Node{Role: node.Role, ExtraMounts: node.ExtraMounts, ExtraPortMappings: node.ExtraPortMappings})
	}
	kubeconfig, err := p.Create(ctx)
	if err != nil {
		return "", err
	}
	if err := p.labelNodes(ctx, config.Nodes); err != nil {
		return "", errors.Join(err, p.Destroy(ctx))
	}
	return kubeconfig, nil
}

// parseKindConfig returns a kind configuration. Its first node is the control plane.
func parseKindConfig(data []byte) (config kindConfig, err error) {
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return config, fmt.Errorf("expected only apiVersion, kind, name, containerdConfigPatches, and nodes with role, image, labels, extraMounts and extraPortMappings: %w", err)
	}
	if config.Kind != "Cluster" {
		return config, fmt.Errorf("found kind %q; expected Cluster of kind.x-k8s.io", config.Kind)
	}
	var controlPlanes, workers []kindNode
	for i, node := range config.Nodes {
		node.Role = cmp.Or(node.Role, v1alpha4.ControlPlaneRole)
		switch node.Role {
		case v1alpha4.ControlPlaneRole:
			controlPlanes = append(controlPlanes, node)
		case v1alpha4.WorkerRole:
			workers = append(workers, node)
		default:
			return config, fmt.Errorf("nodes[%d].role: found %q; expected control-plane or worker", i, node.Role)
		}
	}
	switch {
	case len(controlPlanes) > 1:
		return config, fmt.Errorf("nodes: found %d control-plane nodes; expected at most 1", len(controlPlanes))
	case len(controlPlanes) == 0:
		controlPlanes = []kindNode{{Role: v1alpha4.ControlPlaneRole}}
	}
	config.Nodes = slices.Concat(controlPlanes, workers)
	return config, nil
}

// labelNodes sets the labels of the nodes. The first element of nodes describes the control plane,
// and the others describe the workers. On the embedded control plane, whose API server runs on no
// node, the only simulated node has the labels of the control plane if there are no workers.
func (p *provider) labelNodes(ctx context.Context, nodes []kindNode) error {
	if p.usersKubeconfig {
		return nil // the nodes are not those of the configuration
	}
	client := p.environment.Admin.CoreV1().Nodes()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes of cluster %s: %w", p.clusterName, err)
	}
	found := map[bool][]string{} // by whether the node is a control-plane node
	for _, item := range list.Items {
		_, controlPlane := item.Labels[controlPlaneLabel]
		found[controlPlane] = append(found[controlPlane], item.Name)
	}
	slices.SortFunc(found[false], func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	names := slices.Concat(found[true], found[false])
	if len(nodes) > len(names) { // the control plane has no node
		nodes = nodes[1:]
	}
	for i, node := range nodes[:min(len(nodes), len(names))] {
		if len(node.Labels) == 0 {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": node.Labels}})
		if err == nil {
			_, err = client.Patch(ctx, names[i], types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			return fmt.Errorf("labeling node %s of cluster %s: %w", names[i], p.clusterName, err)
		}
	}
	return nil
}
