package embedded

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options configures an embedded cluster.
type Options struct {
	// Nodes is the number of nodes, from 1 to NodesMax. Each node has capacity for
	// podsPerNodeMax pods.
	Nodes int
	// PodStartDelay is the time from the scheduling of a pod until it is Ready.
	PodStartDelay time.Duration
	// PodStopDelay is the time from the graceful deletion of a pod until it is removed.
	PodStopDelay time.Duration
	// Controllers are the controllers under test, which the control plane does not run. If
	// it is empty, these are the default controllers.
	Controllers []kube.Controller
	// Dir is an existing directory that only this run uses. The cluster creates
	// Dir/cluster for its state and removes it when it stops.
	Dir string
	// LogDir is the directory of the log files, <component>.log. The cluster does not
	// remove them.
	LogDir string
	// BinDir contains the binaries. If it is empty, the cache of harness/upstream is
	// used.
	BinDir string
	// Verbosity is the -v flag of the Kubernetes components, from 0 to 10.
	Verbosity int
}

const (
	// NodesMax limits the number of nodes. It exceeds the number that a laptop can
	// simulate.
	NodesMax = 1000
	// podDelayMax limits the pod delays, because a longer delay is most likely a wrong
	// unit.
	podDelayMax = time.Hour
	// freeBytesMin is the free disk space that a cluster needs to start. etcd reserves
	// 64 MiB for its write-ahead log, twice.
	freeBytesMin = 256 << 20
)

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

// absolute returns a copy of the options with absolute paths. Relative paths would not
// work, because the components have another working directory.
func (o Options) absolute() (Options, error) {
	for _, dir := range []*string{&o.Dir, &o.LogDir, &o.BinDir} {
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

// checkDiskSpace returns nil if the disk of dir has enough free space for a cluster.
// The errors of components on a full disk are hard to understand and may be missing
// in their logs.
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
