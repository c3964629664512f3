package run

import (
	"context"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
)

// provider describes how a run starts its replicas on the clusters of a provider.
type provider struct {
	// preflight returns an error if the options do not allow a run. It starts nothing.
	preflight func(*Options) error
	// setUpReplicas prepares the replicas of the subject.
	setUpReplicas func(context.Context, *testEnvironment) (replicaSetup, error)
}

// providerNamed returns how a run starts its replicas on a provider.
func providerNamed(name string) (provider, error) {
	p, err := providers.Named(name)
	switch {
	case err != nil:
		return provider{}, err
	case p.Capabilities.Has(cluster.SubjectInPods):
		return provider{preflight: podsPreflight, setUpReplicas: podReplicas}, nil
	case !p.Capabilities.Has(cluster.OwnsControlPlane):
		return provider{preflight: existingPreflight, setUpReplicas: existingReplicas}, nil
	}
	return provider{preflight: func(o *Options) error {
		_, err := localExecutable(o)
		return err
	}, setUpReplicas: localReplicas}, nil
}

// Providers returns the names of all providers.
func Providers() []string { return providers.Names() }

// Versions returns the versions of a provider's control plane, as far as they are known
// before a run.
func Versions(provider, upstreamDir string, o existing.Options) (map[string]string, error) {
	p, err := providers.Named(provider)
	if err != nil {
		return nil, err
	}
	return p.Versions(providers.Options{UpstreamDir: upstreamDir, Existing: o})
}
