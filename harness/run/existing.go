package run

import (
	"context"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// This file contains the setup of subjects on an existing cluster.

// existingExecutable returns the path of the subject's executable. Only the target
// upstream needs an upstream binary here.
func existingExecutable(o *Options) (string, error) {
	if o.Target != subject.Upstream {
		return o.Target.Executable(o.Ours, "")
	}
	binaries, err := embedded.FindBinaries(o.UpstreamDir)
	return binaries.KubeControllerManager, err
}

// existingPreflight returns an error if the options do not allow a run on an existing
// cluster. It creates nothing.
func existingPreflight(o *Options) error {
	if _, err := existing.Config(o.Existing.Kubeconfig, o.Existing.Context); err != nil {
		return err
	}
	_, err := existingExecutable(o)
	return err
}

// existingReplicas returns the setup for processes of this machine on an existing
// cluster. Their service account and lease are in the run's namespace. Cluster-wide
// permissions are revoked at the end.
func existingReplicas(_ context.Context, e *testEnvironment) (replicaSetup, error) {
	executable, err := existingExecutable(e.Options)
	if err != nil {
		return replicaSetup{}, err
	}
	e.teardowns = append(e.teardowns, func(ctx context.Context) error { return subject.Revoke(ctx, e.admin) })
	return e.localReplicas(executable, existing.Account(), namespace), nil
}
