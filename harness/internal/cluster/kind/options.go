package kind

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options says what [Start] creates: the nodes and their image, directories, ports and so on.
type Options struct {
	// Workers is the number of worker nodes, from 0 to [WorkersMax]. In a cluster without worker
	// nodes, pods run on the control plane node.
	Workers int
	// Config is a kind configuration with exactly one control plane node, or nil. If Config is not
	// nil, Start ignores Workers. Start overwrites the node images, apiServerAddress, podSubnet,
	// ipFamily and disableDefaultCNI.
	Config *v1alpha4.Cluster
	// Image is the name of the container image that the nodes run. Empty means that [ChooseImage]
	// selects an image.
	Image string
	// Controllers lists the controllers under test, which the cluster's own kube-controller-manager
	// does not run. Nil means [kube.DefaultControllers].
	Controllers []kube.Controller
	// Dir is an existing directory that no other cluster uses. Start creates Dir/cluster for the
	// state of the cluster, and [Cluster.Stop] removes Dir/cluster.
	Dir string
	// LogDir is the directory of the log files. [Cluster.Stop] does not remove these files.
	LogDir string
	// Within limits the duration of one attempt to start, without the time to pull the image. The
	// maximum is one hour; 0 means 5 minutes.
	Within time.Duration
	// Keep makes a started cluster run until [Cluster.Stop] or [Remove], even after gauntlet has
	// exited. If gauntlet dies before the start is complete, a second process, the guard, removes
	// the cluster. Until then, [List] reports the incomplete cluster as [LeftBehind].
	Keep bool
	// DNS runs CoreDNS on the control plane node, so that pods can resolve the names of Services.
	DNS bool
	// Ports lists TCP ports of the control plane node to which [Node.Dial] can connect. The
	// container engine forwards a local port to each of these ports.
	Ports []int
}

// WorkersMax is the maximum of Options.Workers. Each worker node needs about 200 MiB of memory,
// without the workload.
const WorkersMax = 20

const (
	// withinDefault is the default of Options.Within. With a local image, an attempt takes about 10
	// s on two idle cores. It takes longer on a slow or busy machine.
	withinDefault = 5 * time.Minute
	// withinMax is the maximum of Options.Within.
	withinMax = time.Hour
)

// nodes returns the kind configuration of all nodes of the new cluster. The control plane node is
// first.
func (o Options) nodes() []v1alpha4.Node {
	if o.Config == nil {
		workers := slices.Repeat([]v1alpha4.Node{{Role: v1alpha4.WorkerRole}}, o.Workers)
		return slices.Insert(workers, 0, v1alpha4.Node{Role: v1alpha4.ControlPlaneRole})
	}
	var nodes []v1alpha4.Node
	for _, node := range o.Config.Nodes {
		node.Image = ""
		if node.Role == v1alpha4.ControlPlaneRole {
			node.ExtraMounts, node.ExtraPortMappings = slices.Clone(node.ExtraMounts), slices.Clone(node.ExtraPortMappings)
			nodes = slices.Insert(nodes, 0, node)
		} else {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// controlPlanes returns the number of control plane nodes in the configuration. validate rejects
// any number but 1.
func (o Options) controlPlanes() (n int) {
	for _, node := range o.nodes() {
		if node.Role == v1alpha4.ControlPlaneRole {
			n++
		}
	}
	return n
}

// validate returns an error that names an option that is missing or outside of its range.
func (o Options) validate() error {
	switch {
	case o.Workers < 0 || o.Workers > WorkersMax:
		return fmt.Errorf("kind cluster: %d workers: expected 0 to %d", o.Workers, WorkersMax)
	case o.Config != nil && o.controlPlanes() != 1:
		return fmt.Errorf("kind cluster: configuration with %d control plane nodes: expected 1", o.controlPlanes())
	case o.Within < 0 || o.Within > withinMax:
		return fmt.Errorf("kind cluster: start timeout %s: expected 0 to %s", o.Within, withinMax)
	case o.Dir == "" || o.LogDir == "":
		return fmt.Errorf("kind cluster: expected a state directory and a log directory, found %q and %q", o.Dir, o.LogDir)
	}
	for _, port := range o.Ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("kind cluster: port %d: expected 1 to 65535", port)
		}
	}
	return nil
}

// absolute returns a copy of the options with absolute paths, which the container engine requires.
func (o Options) absolute() (Options, error) {
	for _, dir := range []*string{&o.Dir, &o.LogDir} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return o, fmt.Errorf("kind cluster: %w", err)
		}
		*dir = abs
	}
	return o, nil
}
