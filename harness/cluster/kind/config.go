package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// podSubnet is the addresses of all pods; kube-controller-manager gives each
	// node a part of it. Clusters do not see each other, so all use the same.
	podSubnet = "10.244.0.0/16"
	// nodeFilesDir is where the control plane's node finds the files of the state
	// directory that the API server reads.
	nodeFilesDir = "/etc/gauntlet"
	tokensFile   = "tokens.csv"
)

// The rate that components which are not under test may call the API server at,
// requests/s and burst: in effect none, since a throttled scheduler would be a
// fault that no scenario asked for.
const (
	supportQPS   = 5000
	supportBurst = 10000
)

// clusterConfig is what kind is told to make. filesDir is the directory, on the
// engine's machine, that holds tokensFile and nothing else.
func clusterConfig(o Options, filesDir string) (*v1alpha4.Cluster, error) {
	patches, err := kubeadmPatches()
	if err != nil {
		return nil, err
	}
	config := &v1alpha4.Cluster{
		KubeadmConfigPatches: patches,
		Networking: v1alpha4.Networking{
			APIServerAddress: "127.0.0.1",
			PodSubnet:        podSubnet,
			IPFamily:         v1alpha4.IPv4Family,
			// Pods are connected by us, the same way on every node image.
			DisableDefaultCNI: true,
		},
		Nodes: []v1alpha4.Node{{
			Role:        v1alpha4.ControlPlaneRole,
			ExtraMounts: []v1alpha4.Mount{{HostPath: filesDir, ContainerPath: nodeFilesDir, Readonly: true}},
		}},
	}
	for _, port := range append([]int{etcdPort}, o.Ports...) {
		config.Nodes[0].ExtraPortMappings = append(config.Nodes[0].ExtraPortMappings, v1alpha4.PortMapping{
			// The port here is kind's to choose, which it does once: one that the
			// engine chooses is another when the node was started again.
			ContainerPort: int32(port), ListenAddress: "127.0.0.1", Protocol: v1alpha4.PortMappingProtocolTCP,
		})
	}
	for range o.Workers {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole})
	}
	v1alpha4.SetDefaultsCluster(config)
	return config, nil
}

// kubeadmPatches change what kind asks of kubeadm. They name no version of
// kubeadm's API: kind fits extraArgs to the one that it uses.
func kubeadmPatches() ([]string, error) {
	// The two that are not among "*" are there for nodes to join: the first signs
	// what a node believes of the cluster.
	controllers := []string{"*", "bootstrap-signer-controller", "token-cleaner-controller"}
	for _, name := range cluster.SubjectControllers {
		controllers = append(controllers, "-"+name)
	}
	client := map[string]string{
		// There is one of each, and kube-controller-manager's lease is the subject's.
		"leader-elect":   "false",
		"kube-api-qps":   fmt.Sprint(supportQPS),
		"kube-api-burst": fmt.Sprint(supportBurst),
	}
	var patches []string
	for _, patch := range []map[string]any{
		{
			"kind": "ClusterConfiguration",
			// The state is thrown away with the cluster.
			"etcd": map[string]any{"local": map[string]any{"extraArgs": map[string]string{"unsafe-no-fsync": "true"}}},
			"apiServer": map[string]any{
				"extraArgs": map[string]string{
					"token-auth-file": nodeFilesDir + "/" + tokensFile,
					// As in the embedded control plane: a subject's burst is not to be
					// answered 429 by the server itself.
					"max-requests-inflight":          "4000",
					"max-mutating-requests-inflight": "4000",
				},
				"extraVolumes": []map[string]any{{
					"name": "gauntlet", "hostPath": nodeFilesDir, "mountPath": nodeFilesDir, "readOnly": true, "pathType": "Directory",
				}},
			},
			"controllerManager": map[string]any{
				"extraArgs": with(client, "controllers", strings.Join(controllers, ",")),
			},
			"scheduler": map[string]any{"extraArgs": client},
		},
		{
			// Nothing here asks for names, and CoreDNS is a Deployment, which only the
			// subject would bring up.
			"kind": "InitConfiguration", "skipPhases": []string{"preflight", "addon/coredns"},
		},
		{
			// Kubelets of 1.35 and later refuse to start on cgroup v1 by default.
			"kind": "KubeletConfiguration", "failCgroupV1": false,
		},
	} {
		data, err := yaml.Marshal(patch)
		if err != nil {
			return nil, fmt.Errorf("writing kubeadm's configuration: %w", err)
		}
		patches = append(patches, string(data))
	}
	return patches, nil
}

// with is a copy of a map with one more entry.
func with(from map[string]string, key, value string) map[string]string {
	to := map[string]string{key: value}
	for k, v := range from {
		to[k] = v
	}
	return to
}
