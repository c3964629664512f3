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

// provider is a kind of control plane that a run can have.
type provider struct {
	name string
	// podsPerNode is how many pods of a workload a node takes; 0 is any number.
	podsPerNode int
	// preflight is what keeps a run on it from being carried out, as far as can be
	// told before anything is started.
	preflight func(*Options) error
	start     func(context.Context, ControlPlane) (cluster.Cluster, error)
	// setUpReplicas makes what a subject on it is made of.
	setUpReplicas func(context.Context, *testEnvironment) (replicaSetup, error)
}

// providers is the table of all.
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
				return nil, err // a nil *embedded.Cluster is no nil Cluster
			}
			return c, nil
		},
	},
	{
		name:          "kind",
		podsPerNode:   90, // of a kubelet's 110; the rest is for the control plane and the subject
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

// workers is how many workers a kind cluster has for a number of nodes that take
// pods: the control plane's node is one when it is alone.
func workers(nodes int) int {
	if nodes == 1 {
		return 0
	}
	return nodes
}

// Providers are the names of the kinds of control plane.
func Providers() []string {
	var names []string
	for _, p := range providers {
		names = append(names, p.name)
	}
	return names
}

// Versions are those of what a run on a provider's control plane runs on, as far
// as they are known beforehand.
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
