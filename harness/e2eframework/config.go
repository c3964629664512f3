package e2eframework

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// CreateWithConfig starts the cluster with a kind configuration file. With an empty path, it
// does the same as Create.
//
// For a kind cluster, the file has the same effect as for kind. But gauntlet chooses the name,
// the images and the pod network. For an embedded cluster, only the number of nodes and the node
// labels have an effect. For an existing cluster, the file has no effect. A warning in the log
// names each field without effect.
func (p *provider) CreateWithConfig(ctx context.Context, path string) (string, error) {
	if path == "" || p.environment != nil {
		return p.Create(ctx)
	}
	data, err := inputfile.ReadText(path)
	if err != nil {
		return "", fmt.Errorf("reading the configuration of cluster %s: %w", p.clusterName, err)
	}
	config, err := parseKindConfig(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if p.name != providers.Kind {
		for _, field := range kindOnlyFields(config) {
			klog.Warningf("%s: %s has no effect on provider %s", path, field, p.name)
		}
	}
	p.nodes, p.kindConfig = max(len(config.Nodes)-1, 1), config
	kubeconfig, err := p.Create(ctx)
	if err != nil || p.name != providers.Embedded { // for a kind cluster, kind has set the node labels
		return kubeconfig, err
	}
	if err := p.labelNodes(ctx, config.Nodes); err != nil {
		return "", errors.Join(err, p.Destroy(ctx))
	}
	return kubeconfig, nil
}

// parseKindConfig parses a kind configuration file in YAML. The first node of the result is the
// control plane node.
func parseKindConfig(data []byte) (*v1alpha4.Cluster, error) {
	config := &v1alpha4.Cluster{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, fmt.Errorf("expected a kind configuration (apiVersion kind.x-k8s.io/v1alpha4): %s", inputfile.JSONReason(err))
	}
	if config.Kind != "Cluster" {
		return nil, fmt.Errorf("kind: found %q; expected Cluster (apiVersion kind.x-k8s.io/v1alpha4)", config.Kind)
	}
	if family := config.Networking.IPFamily; family != "" && family != v1alpha4.IPv4Family {
		return nil, fmt.Errorf("networking.ipFamily: found %q; expected %s", family, v1alpha4.IPv4Family)
	}
	var controlPlanes, workers []v1alpha4.Node
	for i, node := range config.Nodes {
		node.Role = cmp.Or(node.Role, v1alpha4.ControlPlaneRole)
		switch node.Role {
		case v1alpha4.ControlPlaneRole:
			controlPlanes = append(controlPlanes, node)
		case v1alpha4.WorkerRole:
			workers = append(workers, node)
		default:
			return nil, fmt.Errorf("nodes[%d].role: found %q; expected control-plane or worker", i, node.Role)
		}
	}
	switch {
	case len(controlPlanes) > 1:
		return nil, fmt.Errorf("nodes: found %d control-plane nodes; expected at most 1", len(controlPlanes))
	case len(controlPlanes) == 0:
		controlPlanes = []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}}
	}
	config.Nodes = slices.Concat(controlPlanes, workers)
	return config, nil
}

// kindOnlyFields returns the fields that a kind configuration sets and that affect only kind
// clusters, such as featureGates. The names are sorted.
func kindOnlyFields(config *v1alpha4.Cluster) []string {
	used := map[string]bool{
		"containerdConfigPatches": len(config.ContainerdConfigPatches)+len(config.ContainerdConfigPatchesJSON6902) > 0,
		"featureGates":            len(config.FeatureGates) > 0,
		"kubeadmConfigPatches":    len(config.KubeadmConfigPatches)+len(config.KubeadmConfigPatchesJSON6902) > 0,
		"networking":              config.Networking != v1alpha4.Networking{},
		"runtimeConfig":           len(config.RuntimeConfig) > 0,
	}
	for _, node := range config.Nodes {
		used["nodes[].extraMounts"] = used["nodes[].extraMounts"] || len(node.ExtraMounts) > 0
		used["nodes[].extraPortMappings"] = used["nodes[].extraPortMappings"] || len(node.ExtraPortMappings) > 0
		patches := len(node.KubeadmConfigPatches)+len(node.KubeadmConfigPatchesJSON6902) > 0
		used["nodes[].kubeadmConfigPatches"] = used["nodes[].kubeadmConfigPatches"] || patches
	}
	maps.DeleteFunc(used, func(_ string, used bool) bool { return !used })
	return slices.Sorted(maps.Keys(used))
}

// labelNodes sets the node labels of an embedded cluster. Its simulated nodes get the labels of the
// workers in nodes. Without workers, the only simulated node gets the labels of the control plane
// node.
func (p *provider) labelNodes(ctx context.Context, nodes []v1alpha4.Node) error {
	client := p.environment.Admin.CoreV1().Nodes()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes of cluster %s: %w", p.clusterName, err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	// node-2 is before node-10
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	if len(nodes) > 1 {
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
