package kind

import (
	"fmt"
	"path/filepath"
	"time"
)

// Options says what cluster to start.
type Options struct {
	// Workers is how many nodes there are beside the control plane, 0 to
	// WorkersMax. Without any, pods run on the control plane's node.
	Workers int
	// Image is the node image; empty is a choice, see [ChooseImage].
	Image string
	// Dir is an existing directory, the cluster's own. The cluster keeps its state
	// in Dir/cluster, which it makes, and removes when it stops.
	Dir string
	// LogDir is where the logs are written. They stay.
	LogDir string
	// Within bounds the start, pulling an image not counted, up to an hour; 0 is 5
	// minutes.
	Within time.Duration
	// Keep says that the cluster may outlive this process: it then goes only when
	// it is stopped or removed (see [Remove]), and what a start that was killed
	// leaves is still no cluster to keep.
	Keep bool
	// Ports are TCP ports of the control plane's node that can be reached from this
	// machine; see [Node.Dial].
	Ports []int
}

// WorkersMax is the most workers a cluster may have: each is a container with
// some 200 MiB of programs in it.
const WorkersMax = 20

const (
	// withinDefault bounds a start. It takes 10 s on two idle cores and a built
	// image; the rest is for machines that are slow or busy.
	withinDefault = 5 * time.Minute
	withinMax     = time.Hour
)

func (o Options) validate() error {
	switch {
	case o.Workers < 0 || o.Workers > WorkersMax:
		return fmt.Errorf("kind cluster: %d workers: want 0 to %d", o.Workers, WorkersMax)
	case o.Within < 0 || o.Within > withinMax:
		return fmt.Errorf("kind cluster: start within %s: want 0 to %s", o.Within, withinMax)
	case o.Dir == "" || o.LogDir == "":
		return fmt.Errorf("kind cluster: needs a directory for its state and one for its logs, has %q and %q", o.Dir, o.LogDir)
	}
	for _, port := range o.Ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("kind cluster: port %d: want 1 to 65535", port)
		}
	}
	return nil
}

// absolute makes the directories absolute, as the engine needs them.
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
