package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

const (
	// podSubnet is the address range of all pods. kube-controller-manager assigns a
	// part of it to each node. All clusters use the same range, because they have
	// separate networks.
	podSubnet = "10.244.0.0/16"
	// nodeFilesDir is the directory on the control plane node where sharedDir is
	// mounted. The API server reads its token file there.
	nodeFilesDir = "/etc/gauntlet"
	tokensFile   = "tokens.csv"
)

// The client-side rate limit of the support components, in requests per second and
// burst. It is so high that it has no effect: a throttled scheduler would be a fault
// that no scenario contains.
const (
	supportQPS   = 5000
	supportBurst = 10000
)

// clusterConfig returns the cluster configuration for kind.
// filesDir is the directory on this machine that contains only tokensFile.
func clusterConfig(o Options, filesDir string) (*v1alpha4.Cluster, error) {
	patches, err := kubeadmPatches(o.Controllers)
	if err != nil {
		return nil, err
	}
	config := &v1alpha4.Cluster{
		KubeadmConfigPatches: patches,
		Networking: v1alpha4.Networking{
			APIServerAddress: "127.0.0.1",
			PodSubnet:        podSubnet,
			IPFamily:         v1alpha4.IPv4Family,
			// connectPods configures the pod network in the same way on every node image.
			DisableDefaultCNI: true,
		},
		Nodes: []v1alpha4.Node{{
			Role:        v1alpha4.ControlPlaneRole,
			ExtraMounts: []v1alpha4.Mount{{HostPath: filesDir, ContainerPath: nodeFilesDir, Readonly: true}},
		}},
	}
	for _, port := range append([]int{etcdPort}, o.Ports...) {
		config.Nodes[0].ExtraPortMappings = append(config.Nodes[0].ExtraPortMappings, v1alpha4.PortMapping{
			// Without a host port, kind chooses one that remains the same when the node is
			// restarted. A port that the container engine chooses would change.
			ContainerPort: int32(port), ListenAddress: "127.0.0.1", Protocol: v1alpha4.PortMappingProtocolTCP,
		})
	}
	for range o.Workers {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole})
	}
	v1alpha4.SetDefaultsCluster(config)
	return config, nil
}

// kubeadmPatches returns the patches for the kubeadm configuration that kind generates.
// They have no apiVersion: kind converts extraArgs to the kubeadm API version that it
// uses. kube-controller-manager runs all controllers except those under test.
func kubeadmPatches(underTest []kube.Controller) ([]string, error) {
	// The last two controllers are not part of "*". Worker nodes need them to join: the
	// first one signs the cluster-info ConfigMap.
	controllers := []string{"*", "bootstrap-signer-controller", "token-cleaner-controller"}
	for _, name := range kube.NamesOf(kube.OrDefault(underTest)) {
		controllers = append(controllers, "-"+name)
	}
	client := map[string]string{
		// Each component has one instance and needs no leader election. The subject uses
		// the Lease of kube-controller-manager.
		"leader-elect":   "false",
		"kube-api-qps":   fmt.Sprint(supportQPS),
		"kube-api-burst": fmt.Sprint(supportBurst),
	}
	var patches []string
	for _, patch := range []map[string]any{
		{
			"kind": "ClusterConfiguration",
			// The data is removed with the cluster, so etcd need not sync it to disk.
			"etcd": map[string]any{"local": map[string]any{"extraArgs": map[string]string{"unsafe-no-fsync": "true"}}},
			"apiServer": map[string]any{
				"extraArgs": map[string]string{
					"token-auth-file": nodeFilesDir + "/" + tokensFile,
					// As in package embedded: the API server must not answer a burst of
					// the subject with status 429.
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
			// The workloads need no DNS. CoreDNS is a Deployment, which would become part
			// of the work of the subject.
			"kind": "InitConfiguration", "skipPhases": []string{"preflight", "addon/coredns"},
		},
		{
			// By default, the kubelet of 1.35 and later does not start on cgroup v1.
			"kind": "KubeletConfiguration", "failCgroupV1": false,
		},
	} {
		data, err := yaml.Marshal(patch)
		if err != nil {
			return nil, fmt.Errorf("encoding a kubeadm configuration patch: %w", err)
		}
		patches = append(patches, string(data))
	}
	return patches, nil
}

// with returns a copy of a map with one additional entry.
func with(from map[string]string, key, value string) map[string]string {
	to := map[string]string{key: value}
	for k, v := range from {
		to[k] = v
	}
	return to
}
