package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/controlplane"
)

// virtualTimeMax is the maximum duration of a run on the virtual clock. A run that never ends then
// fails instead of running forever.
const virtualTimeMax = 30 * 24 * time.Hour

// record makes the run whose directory is dir, and writes its history. It returns the exit status
// of the program. Call it in a bubble of testing/synctest.
func record(ctx context.Context, dir string) int {
	ctx, cancel := context.WithTimeoutCause(ctx, virtualTimeMax, fmt.Errorf("the run did not end within %s of virtual time", virtualTimeMax))
	defer cancel()
	err := run.Record(ctx, dir, func(seed uint64, o providers.Options) (cluster.Cluster, error) {
		seedRandomNumbers(seed)
		return controlplane.Start(ctx, seed, o)
	}, func(message string) { klog.Info(message) })
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
