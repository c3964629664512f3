package run

import (
	"context"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// This file is about subjects on a cluster that is not the run's own.

// existingExecutable is what the processes of such a subject run: of the binaries
// of a control plane, only upstream's controllers are needed.
func existingExecutable(o *Options) (string, error) {
	if o.Target != subject.Upstream {
		return o.Target.Executable(o.Ours, "")
	}
	binaries, err := embedded.FindBinaries(o.UpstreamDir)
	return binaries.KubeControllerManager, err
}

// existingPreflight is what keeps a run from being carried out there, as far as can
// be told before anything is made.
func existingPreflight(o *Options) error {
	if _, err := existing.Config(o.Existing.Kubeconfig, o.Existing.Context); err != nil {
		return err
	}
	_, err := existingExecutable(o)
	return err
}

// existingReplicas are processes of this machine with an account in the run's
// namespace, which is where they elect too. What they are granted beyond it is
// taken back at the end.
func existingReplicas(_ context.Context, s *testEnvironment) (replicaSetup, error) {
	executable, err := existingExecutable(s.Options)
	if err != nil {
		return replicaSetup{}, err
	}
	s.teardowns = append(s.teardowns, func(ctx context.Context) error { return subject.Revoke(ctx, s.admin) })
	return s.localReplicas(executable, existing.Account(), namespace), nil
}
