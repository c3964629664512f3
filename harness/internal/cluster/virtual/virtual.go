// Package virtual describes the provider of control planes in virtual time.
//
// Such a control plane is a part of the program gauntlet-virtual, which the module harness/virtual
// contains. gauntlet starts the program once for each run, and the program records the history. The
// program links kube-apiserver, which gauntlet does not.
package virtual

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
)

// Name is the name of this provider.
const Name = "virtual"

// Program is the file name of the program that contains the control plane.
const Program = "gauntlet-virtual"

// Capabilities are the capabilities of this provider.
var Capabilities = cluster.Capabilities{
	cluster.OwnsControlPlane, cluster.AccessesEtcd, cluster.ParallelRuns, cluster.VirtualTime,
	cluster.SimulatedKubelets, cluster.ControlsContainers,
	cluster.SubjectLinked, cluster.SkewsClocks,
}

// Find returns the path of [Program], which is in the same directory as the gauntlet executable.
func Find(gauntlet string) (string, error) {
	if gauntlet == "" {
		return "", errors.New("found no path of the gauntlet executable; expected one, because " + Program + " is in the same directory")
	}
	path := filepath.Join(filepath.Dir(gauntlet), Program)
	if err := executable.Check(path); err != nil {
		return "", fmt.Errorf("%s: %w; run `make virtual` in a checkout of gauntlet", path, err)
	}
	return path, nil
}

// Start returns an error, because only [Program] contains the control plane.
func Start(context.Context) (cluster.Cluster, error) {
	return nil, errors.New("a control plane in virtual time exists only during `gauntlet run`; expected another provider")
}
