package run

import (
	"context"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
)

// ControlPlane says what control plane to start, whatever its provider. What a provider
// has no use for it leaves alone: a real kubelet takes its own time.
type ControlPlane struct {
	// Nodes is how many nodes take pods, at least 1.
	Nodes int
	// PodStartDelay is how long a simulated pod takes from its node to Ready, and
	// PodStopDelay how long to go once it is deleted.
	PodStartDelay, PodStopDelay time.Duration
	// Dir is an existing directory for the state, LogDir one for the logs.
	Dir, LogDir string
	// UpstreamDir holds the binaries of etcd, Kubernetes and KWOK; empty is the
	// cache that harness/upstream fills.
	UpstreamDir string
	// NodeImage is the image of a kind node; empty is the provider's choice.
	NodeImage string
	// Relays is how many replicas in the cluster's pods must be within reach.
	Relays int
	// Existing says which cluster to use that somebody else made.
	Existing existing.Options
	// Standing says that the cluster may outlive gauntlet, where it can.
	Standing bool
}

// StartControlPlane starts a control plane without any subject on it.
func StartControlPlane(ctx context.Context, provider string, p ControlPlane) (cluster.Cluster, error) {
	chosen, err := providerNamed(provider)
	if err != nil {
		return nil, err
	}
	return chosen.start(ctx, p)
}
