package kind

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options configures a kind cluster.
type Options struct {
	// Workers is the number of worker nodes, from 0 to WorkersMax. Without worker
	// nodes, pods run on the control plane node.
	Workers int
	// Image is the node image. If it is empty, [ChooseImage] selects one.
	Image string
	// Controllers are the controllers under test, which the control plane does not run. If
	// it is empty, these are the default controllers.
	Controllers []kube.Controller
	// Dir is an existing directory that only this cluster uses. The cluster creates
	// Dir/cluster for its state and removes it when it stops.
	Dir string
	// LogDir is the directory of the log files. The cluster does not remove them.
	LogDir string
	// Within limits the duration of the start, without the time to pull an image. The
	// maximum is one hour; 0 means 5 minutes.
	Within time.Duration
	// Keep makes the cluster outlive this process. It then exists until it is stopped or
	// removed; see [Remove]. If the start was killed, the incomplete cluster counts as
	// left behind.
	Keep bool
	// Ports are TCP ports of the control plane node to forward to this machine; see
	// [Node.Dial].
	Ports []int
}

// WorkersMax limits the number of worker nodes. Each one needs about 200 MiB for its programs.
const WorkersMax = 20

const (
	// withinDefault is the default of Options.Within. A start with a built image takes
	// 10 s on two idle cores, and longer on a slow or busy machine.
	withinDefault = 5 * time.Minute
	withinMax     = time.Hour
)

func (o Options) validate() error {
	switch {
	case o.Workers < 0 || o.Workers > WorkersMax:
		return fmt.Errorf("kind cluster: %d workers: expected 0 to %d", o.Workers, WorkersMax)
	case o.Within < 0 || o.Within > withinMax:
		return fmt.Errorf("kind cluster: start within %s: expected 0 to %s", o.Within, withinMax)
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

// absolute returns the options with absolute paths, which the container engine requires.
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
