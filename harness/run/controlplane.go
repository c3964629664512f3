package run

import (
	"context"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
)

// ControlPlane says which control plane to start, for any provider. Providers ignore
// fields that do not apply to them: with a real kubelet, for example, the pod delays
// have no effect.
type ControlPlane struct {
	// Nodes is the number of schedulable nodes, at least 1.
	Nodes int
	// PodStartDelay is the time from scheduling to Ready of a simulated pod.
	// PodStopDelay is the time from its deletion to its end.
	PodStartDelay, PodStopDelay time.Duration
	// Dir is an existing directory for state. LogDir is an existing directory for logs.
	Dir, LogDir string
	// UpstreamDir holds the binaries of etcd, Kubernetes and KWOK. If it is empty, the
	// run uses the cache that harness/upstream fills.
	UpstreamDir string
	// NodeImage is the image of a kind node. If it is empty, the provider uses its
	// default image.
	NodeImage string
	// Relays is the number of subject replicas that run in pods. Each replica connects to
	// the fault proxy through a relay in its pod. The provider makes the ports of the
	// relays reachable from this machine.
	Relays int
	// Existing selects an existing cluster.
	Existing existing.Options
	// Standing allows the cluster to outlive gauntlet, if the provider supports that.
	Standing bool
}

// StartControlPlane starts a control plane without a subject.
func StartControlPlane(ctx context.Context, provider string, p ControlPlane) (cluster.Cluster, error) {
	chosen, err := providerNamed(provider)
	if err != nil {
		return nil, err
	}
	return chosen.start(ctx, p)
}
