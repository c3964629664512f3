package embedded

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Options says what cluster to start.
type Options struct {
	// Nodes is how many nodes there are, 1 to NodesMax. Each holds
	// podsPerNodeMax pods.
	Nodes int
	// PodStartDelay is the time from a pod's scheduling to its being Ready.
	PodStartDelay time.Duration
	// PodStopDelay is the time from a pod's graceful deletion to its being gone.
	PodStopDelay time.Duration
	// Dir is an existing directory, the run's own. The cluster keeps its state
	// in Dir/cluster, which it makes, and removes when it stops.
	Dir string
	// LogDir is where each component's <name>.log is written. The logs stay.
	LogDir string
	// BinDir holds the binaries; empty is the cache of harness/upstream.
	BinDir string
	// Verbosity is the -v of the Kubernetes components, 0 to 10.
	Verbosity int
}

const (
	// NodesMax is the most nodes a cluster may have: more than a laptop serves.
	NodesMax = 1000
	// podDelayMax bounds the delays: a longer one is a mistake in the unit.
	podDelayMax = time.Hour
	// roomBytesMin is the free space a cluster needs to start; etcd alone
	// reserves 64 MiB for its write-ahead log, twice.
	roomBytesMin = 256 << 20
)

func (o Options) validate() error {
	switch {
	case o.Nodes < 1 || o.Nodes > NodesMax:
		return fmt.Errorf("embedded cluster: %d nodes: want 1 to %d", o.Nodes, NodesMax)
	case o.PodStartDelay < 0 || o.PodStartDelay > podDelayMax:
		return fmt.Errorf("embedded cluster: pod start delay %s: want 0 to %s", o.PodStartDelay, podDelayMax)
	case o.PodStopDelay < 0 || o.PodStopDelay > podDelayMax:
		return fmt.Errorf("embedded cluster: pod stop delay %s: want 0 to %s", o.PodStopDelay, podDelayMax)
	case o.Dir == "" || o.LogDir == "":
		return fmt.Errorf("embedded cluster: needs a directory for its state and one for its logs, has %q and %q", o.Dir, o.LogDir)
	case o.Verbosity < 0 || o.Verbosity > 10:
		return fmt.Errorf("embedded cluster: verbosity %d: want 0 to 10", o.Verbosity)
	}
	return nil
}

// absolute makes the directories absolute, as the children need them.
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

// checkRoom sees that the disk has room for a cluster, since what its
// components say of a full disk is hard to understand, and may not even fit
// into their logs.
func checkRoom(dir string, bytesMin int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("embedded cluster: the state directory %s: %w", dir, err)
	}
	if free := int64(stat.Bavail) * stat.Bsize; free < bytesMin {
		return fmt.Errorf("embedded cluster: no space left on the disk of %s: %d MiB are free, %d MiB are needed", dir, free>>20, bytesMin>>20)
	}
	return nil
}
