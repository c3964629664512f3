package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

const (
	// podSubnet is the IP address range of a cluster's pods. kube-controller-manager assigns a
	// subrange to each node. All clusters can use the same range, because each cluster has a
	// separate container network.
	podSubnet = "10.244.0.0/16"
	// nodeFilesDir is the directory on the control plane node at which kind mounts sharedDir, a
	// subdirectory of the state directory.
	nodeFilesDir = "/etc/gauntlet"
	// tokensFile is the name of a file in sharedDir with the bearer tokens of all users of the
	// cluster. Each user has a role (cluster.Role). kube-apiserver reads this file (flag
	// --token-auth-file).
	tokensFile = "tokens.csv"
)

// The client-side rate limit of kube-scheduler and kube-controller-manager: requests per second,
// and burst. The limit is so high that it never delays a request, because only faults may delay
// requests in a run.
const (
	supportQPS   = 5000
	supportBurst = 10000
)

// clusterConfig returns the configuration from which kind creates the cluster. kind mounts the
// local directory filesDir into the control plane node.
func clusterConfig(o Options, filesDir string) (*v1alpha4.Cluster, error) {
	patches, err := kubeadmPatches(o)
	if err != nil {
		return nil, err
	}
	config := &v1alpha4.Cluster{}
	if o.Config != nil {
		*config = *o.Config
	}
	config.KubeadmConfigPatches = append(patches, config.KubeadmConfigPatches...)
	config.Networking.APIServerAddress = "127.0.0.1"
	config.Networking.PodSubnet = podSubnet
	config.Networking.IPFamily = v1alpha4.IPv4Family
	// connectPods configures the pod network instead of kind's CNI plugin, so that the network is
	// the same for every node image.
	config.Networking.DisableDefaultCNI = true
	config.Nodes = o.nodes()
	controlPlane := &config.Nodes[0]
	controlPlane.ExtraMounts = append(controlPlane.ExtraMounts, v1alpha4.Mount{HostPath: filesDir, ContainerPath: nodeFilesDir, Readonly: true})
	for _, port := range append([]int{etcdPort}, o.Ports...) {
		controlPlane.ExtraPortMappings = append(controlPlane.ExtraPortMappings, v1alpha4.PortMapping{
			// HostPort is not set, so kind chooses a local port, which stays the same after a
			// restart of the node. A port that the container engine chose would change.
			ContainerPort: int32(port), ListenAddress: "127.0.0.1", Protocol: v1alpha4.PortMappingProtocolTCP,
		})
	}
	v1alpha4.SetDefaultsCluster(config)
	return config, nil
}

// kubeadmPatches returns YAML patches for the kubeadm configuration that kind generates. For
// example, the patches make kube-controller-manager run all default controllers except those under
// test.
//
// The patches have no apiVersion, because kind converts extraArgs to the kubeadm API version of the
// node image.
func kubeadmPatches(o Options) ([]string, error) {
	// "*" does not include bootstrap-signer-controller and token-cleaner-controller. Worker nodes
	// can join only after bootstrap-signer-controller has signed the cluster-info ConfigMap.
	controllers := []string{"*", "bootstrap-signer-controller", "token-cleaner-controller"}
	for _, name := range kube.NamesOf(kube.OrDefault(o.Controllers)) {
		controllers = append(controllers, "-"+name)
	}
	client := map[string]string{
		// Each component has only one instance and needs no leader election. The subject uses the
		// Lease that kube-controller-manager would otherwise hold.
		"leader-elect":   "false",
		"kube-api-qps":   fmt.Sprint(supportQPS),
		"kube-api-burst": fmt.Sprint(supportBurst),
	}
	skipped := []string{"preflight"}
	if !o.DNS {
		skipped = append(skipped, "addon/coredns")
	}
	var patches []string
	for _, patch := range []map[string]any{
		{
			"kind": "ClusterConfiguration",
			// etcd need not sync its data to disk, because Stop removes the data.
			"etcd": map[string]any{"local": map[string]any{"extraArgs": map[string]string{"unsafe-no-fsync": "true"}}},
			"apiServer": map[string]any{
				"extraArgs": map[string]string{
					"token-auth-file": nodeFilesDir + "/" + tokensFile,
					// With the default limits, the API server could reject a burst of the subject's
					// requests with status 429.
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
		{"kind": "InitConfiguration", "skipPhases": skipped},
		{
			// By default, the kubelet of Kubernetes 1.35 and later exits on cgroup v1.
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

// with returns a copy of a map, to which it adds a key with a value. If the map already contains
// the key, the copy keeps the existing value.
func with(from map[string]string, key, value string) map[string]string {
	to := map[string]string{key: value}
	for k, v := range from {
		to[k] = v
	}
	return to
}
