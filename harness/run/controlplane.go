package run

import (
	"context"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
)

// ControlPlane says which control plane to start.
type ControlPlane = providers.Options

// StartControlPlane starts a control plane without a subject.
func StartControlPlane(ctx context.Context, provider string, p ControlPlane) (cluster.Cluster, error) {
	chosen, err := providers.Named(provider)
	if err != nil {
		return nil, err
	}
	return chosen.Start(ctx, p)
}
