package embedded

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options says what [Start] starts: the number of nodes, the delays of simulated pods,
// directories and so on.
type Options struct {
	// Nodes is the number of nodes, from 1 to [NodesMax]. Each node has capacity for 2000 pods
	// ([podsPerNodeMax]).
	Nodes int
	// PodStartDelay is the time from the scheduling of a pod until KWOK makes the pod Ready.
	PodStartDelay time.Duration
	// PodStopDelay is the time from a pod's graceful deletion until KWOK deletes the pod with grace
	// period 0.
	PodStopDelay time.Duration
	// Controllers lists the controllers under test, which the cluster's own kube-controller-manager
	// does not run. Nil means [kube.DefaultControllers].
	Controllers []kube.Controller
	// Volumes creates a default StorageClass whose PersistentVolumes are only API objects. Simulated
	// kubelets then also retry what a webhook has refused; see [kubeletRetries].
	Volumes bool
	// Definitions are CustomResourceDefinitions that exist before kube-controller-manager starts. Its
	// garbage collector notices kinds that are defined later only after about 30 s.
	Definitions []*unstructured.Unstructured
	// Dir is an existing directory that no other cluster uses. Start creates Dir/cluster for the
	// state of the cluster, and [Cluster.Stop] removes Dir/cluster.
	Dir string
	// LogDir is the directory of the log files, such as kube-apiserver.log. [Cluster.Stop] does not
	// remove these files.
	LogDir string
	// BinDir is the directory with the binaries etcd, kube-apiserver and so on. Empty means the
	// cache directory that `gauntlet setup` fills.
	BinDir string
	// AuditLog is the path of kube-apiserver's audit log, which contains each request with its body
	// and its response. Empty means no audit log. [Cluster.Stop] does not remove the file.
	AuditLog string
	// Verbosity is the value of the flag -v of the Kubernetes components, from 0 to 10.
	Verbosity int
}

const (
	// NodesMax is the maximum of Options.Nodes. A laptop cannot simulate so many nodes, so a larger
	// number is most likely a mistake.
	NodesMax = 1000
	// podDelayMax is the maximum of PodStartDelay and PodStopDelay. A longer delay most likely has
	// a wrong unit.
	podDelayMax = time.Hour
	// freeBytesMin is the free disk space in bytes that [Start] requires. etcd alone allocates two
	// files of 64 MiB for its write-ahead log.
	freeBytesMin = 256 << 20
)

// validate returns an error that names an option that is missing or outside of its range.
func (o Options) validate() error {
	switch {
	case o.Nodes < 1 || o.Nodes > NodesMax:
		return fmt.Errorf("embedded cluster: %d nodes: expected 1 to %d", o.Nodes, NodesMax)
	case o.PodStartDelay < 0 || o.PodStartDelay > podDelayMax:
		return fmt.Errorf("embedded cluster: pod start delay %s: expected 0 to %s", o.PodStartDelay, podDelayMax)
	case o.PodStopDelay < 0 || o.PodStopDelay > podDelayMax:
		return fmt.Errorf("embedded cluster: pod stop delay %s: expected 0 to %s", o.PodStopDelay, podDelayMax)
	case o.Dir == "" || o.LogDir == "":
		return fmt.Errorf("embedded cluster: expected a state directory and a log directory, found %q and %q", o.Dir, o.LogDir)
	case o.Verbosity < 0 || o.Verbosity > 10:
		return fmt.Errorf("embedded cluster: verbosity %d: expected 0 to 10", o.Verbosity)
	}
	return nil
}

// absolute returns a copy of the options with absolute paths. The components could not use relative
// paths, because their working directory is the state directory.
func (o Options) absolute() (Options, error) {
	for _, dir := range []*string{&o.Dir, &o.LogDir, &o.BinDir, &o.AuditLog} {
		if *dir == "" {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return o, fmt.Errorf("embedded cluster: %w", err)
		}
		*dir = abs
	}
	return o, nil
}

// checkDiskSpace returns an error if fewer than bytesMin bytes are free on the disk that contains
// dir. On a full disk, components fail with errors that are hard to understand, or without a log.
func checkDiskSpace(dir string, bytesMin int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("embedded cluster: state directory %s: %w", dir, err)
	}
	if free := int64(stat.Bavail) * stat.Bsize; free < bytesMin {
		return fmt.Errorf("embedded cluster: no space left on the disk of %s: %d MiB free, %d MiB required", dir, free>>20, bytesMin>>20)
	}
	return nil
}
