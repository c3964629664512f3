package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
)

// provider is a kind of control plane that a run can have.
type provider struct {
	name string
	// upstream returns the path of kube-controller-manager, which is the upstream
	// subject; its error says what of the provider's needs is missing.
	upstream func(*Options) (string, error)
	start    func(context.Context, *Options, directory) (cluster.Cluster, error)
}

// providers is the table of all.
var providers = []provider{
	{
		name: "embedded",
		upstream: func(o *Options) (string, error) {
			binaries, err := embedded.FindBinaries(o.UpstreamDir)
			return binaries.KubeControllerManager, err
		},
		start: func(ctx context.Context, o *Options, dir directory) (cluster.Cluster, error) {
			c, err := embedded.Start(ctx, embedded.Options{
				Nodes:         o.Scenario.Cluster.Nodes,
				PodStartDelay: o.Scenario.Cluster.PodStartDelay,
				Dir:           dir.state(),
				LogDir:        dir.logs(),
				BinDir:        o.UpstreamDir,
			})
			if err != nil {
				return nil, err // a nil *embedded.Cluster is no nil Cluster
			}
			return c, nil
		},
	},
}

// Providers are the names of the kinds of control plane.
func Providers() []string {
	var names []string
	for _, p := range providers {
		names = append(names, p.name)
	}
	return names
}

func providerNamed(name string) (provider, error) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, fmt.Errorf("provider %q: expected %s", name, strings.Join(Providers(), " or "))
	}
	return providers[i], nil
}
