package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/subject/pods"
)

// provider describes how a run gets its control plane and starts its replicas.
type provider struct {
	name string
	// podsPerNode is the number of workload pods that fit on a node; 0 means any
	// number.
	podsPerNode int
	// preflight returns an error if the options do not allow a run. It starts nothing.
	preflight func(*Options) error
	start     func(context.Context, ControlPlane) (cluster.Cluster, error)
	// setUpReplicas prepares the replicas of the subject.
	setUpReplicas func(context.Context, *testEnvironment) (replicaSetup, error)
}

// providers contains all providers.
var providers = []provider{
	{
		name: "embedded",
		preflight: func(o *Options) error {
			_, err := localExecutable(o)
			return err
		},
		setUpReplicas: localReplicas,
		start: func(ctx context.Context, p ControlPlane) (cluster.Cluster, error) {
			c, err := embedded.Start(ctx, embedded.Options{
				Nodes:         p.Nodes,
				PodStartDelay: p.PodStartDelay,
				PodStopDelay:  p.PodStopDelay,
				Dir:           p.Dir,
				LogDir:        p.LogDir,
				BinDir:        p.UpstreamDir,
			})
			if err != nil {
				return nil, err // do not return c: a nil *embedded.Cluster is not a nil Cluster
			}
			return c, nil
		},
	},
	{
		name:          "kind",
		podsPerNode:   90, // of a kubelet's 110; system pods and the subject use the rest
		preflight:     podsPreflight,
		setUpReplicas: podReplicas,
		start: func(ctx context.Context, p ControlPlane) (cluster.Cluster, error) {
			c, err := kind.Start(ctx, kind.Options{
				Workers: workers(p.Nodes),
				Image:   p.NodeImage,
				Dir:     p.Dir,
				LogDir:  p.LogDir,
				Keep:    p.Standing,
				Ports:   pods.Ports(p.Relays),
			})
			if err != nil {
				return nil, err
			}
			return c, nil
		},
	},
	{
		name:          faults.Existing,
		preflight:     existingPreflight,
		setUpReplicas: existingReplicas,
		start: func(ctx context.Context, p ControlPlane) (cluster.Cluster, error) {
			c, err := existing.Start(ctx, p.Existing)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
	},
}

// workers returns the number of kind worker nodes for a number of schedulable nodes.
// With one node, the control-plane node takes the pods.
func workers(nodes int) int {
	if nodes == 1 {
		return 0
	}
	return nodes
}

// Providers returns the names of all providers.
func Providers() []string {
	var names []string
	for _, p := range providers {
		names = append(names, p.name)
	}
	return names
}

// Versions returns the versions of a provider's control plane, as far as they are known
// before a run.
func Versions(provider, upstreamDir string, o existing.Options) (map[string]string, error) {
	if provider != faults.Existing {
		return embedded.Versions(upstreamDir), nil
	}
	version, err := existing.Version(o.Kubeconfig, o.Context)
	return map[string]string{"kubernetes": version}, err
}

func providerNamed(name string) (provider, error) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, fmt.Errorf("provider %q: expected %s", name, strings.Join(Providers(), " or "))
	}
	return providers[i], nil
}
