package e2eframework

import (
	"context"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// kindConfig has the fields of a kind configuration file that the providers support.
type kindConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Nodes      []struct {
		Role string `json:"role"`
		// Image is accepted and has no effect: WithNodeImage sets the image of all nodes.
		Image string `json:"image"`
	} `json:"nodes"`
}

// CreateWithConfig starts the cluster with the number of workers in a kind configuration file.
// An empty path means the same as Create.
//
// It returns an error for fields other than the name and the nodes' role and image, because it
// would ignore them.
func (p *provider) CreateWithConfig(ctx context.Context, path string) (string, error) {
	if path == "" {
		return p.Create(ctx)
	}
	data, err := inputfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("reading the configuration of cluster %s: %w", p.clusterName, err)
	}
	if p.nodes, err = workersOf(data); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return p.Create(ctx)
}

// workersOf returns the number of nodes that run pods: the workers, or 1 if there are none.
func workersOf(data []byte) (int, error) {
	var config kindConfig
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return 0, fmt.Errorf("expected only apiVersion, kind, name and nodes with role and image: %w", err)
	}
	if config.Kind != "Cluster" {
		return 0, fmt.Errorf("found kind %q; expected Cluster of kind.x-k8s.io", config.Kind)
	}
	controlPlanes, workers := 0, 0
	for i, node := range config.Nodes {
		switch node.Role {
		case "control-plane", "":
			controlPlanes++
		case "worker":
			workers++
		default:
			return 0, fmt.Errorf("nodes[%d].role: found %q; expected control-plane or worker", i, node.Role)
		}
	}
	if controlPlanes > 1 {
		return 0, fmt.Errorf("nodes: found %d control-plane nodes; expected at most 1", controlPlanes)
	}
	return max(workers, 1), nil
}
