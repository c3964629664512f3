// Package providers is the table of the providers of clusters.
//
// A provider is chosen by its name only on the command line. Everything else asks for the
// capabilities of a provider; see [cluster.Capability].
package providers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/internal/pods"
)

// Provider describes a provider of clusters.
type Provider struct {
	// Name is the value of the flag --provider.
	Name string
	// Capabilities are the capabilities of the provider's clusters.
	Capabilities cluster.Capabilities
	// PodsPerNode is the number of workload pods that fit on a node; 0 means any number.
	PodsPerNode int
	// Start starts a cluster without a subject.
	Start func(context.Context, Options) (cluster.Cluster, error)
	// Preflight returns an error if the options of the provider do not allow a start. It
	// starts nothing.
	Preflight func(Options) error
	// Versions returns the versions of the control plane, as far as they are known before
	// the start.
	Versions func(Options) (map[string]string, error)
}

// All contains all providers. The first one is the default.
var All = []Provider{
	{
		Name:         embedded.Name,
		Capabilities: embedded.Capabilities,
		Start:        startEmbedded,
		Preflight: func(o Options) error {
			_, err := embedded.FindBinaries(o.UpstreamDir)
			return err
		},
		Versions: upstreamVersions,
	},
	{
		Name:         kind.Name,
		Capabilities: kind.Capabilities,
		PodsPerNode:  90, // of a kubelet's 110; system pods and the subject use the rest
		Start:        startKind,
		Preflight:    func(Options) error { return nil }, // the start checks the container engine
		Versions:     upstreamVersions,
	},
	{
		Name:         existing.Name,
		Capabilities: existing.Capabilities,
		Start:        startExisting,
		Preflight:    func(o Options) error { return existing.Preflight(o.existing()) },
		Versions: func(o Options) (map[string]string, error) {
			version, err := existing.Version(o.Existing.Kubeconfig, o.Existing.Context)
			return map[string]string{"kubernetes": version}, err
		},
	},
}

func startEmbedded(ctx context.Context, o Options) (cluster.Cluster, error) {
	c, err := embedded.Start(ctx, embedded.Options{
		Nodes:         o.Nodes,
		PodStartDelay: o.PodStartDelay,
		PodStopDelay:  o.PodStopDelay,
		Controllers:   o.Controllers,
		Dir:           o.Dir,
		LogDir:        o.LogDir,
		BinDir:        o.UpstreamDir,
	})
	if err != nil {
		return nil, err // do not return c: a nil *embedded.Cluster is not a nil Cluster
	}
	return c, nil
}

func startKind(ctx context.Context, o Options) (cluster.Cluster, error) {
	c, err := kind.Start(ctx, kind.Options{
		Workers:     workers(o.Nodes),
		Image:       o.NodeImage,
		Controllers: o.Controllers,
		Dir:         o.Dir,
		LogDir:      o.LogDir,
		Keep:        o.Standing,
		Ports:       pods.Ports(o.Relays),
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// workers returns the number of kind worker nodes for a number of schedulable nodes.
// With one node, the control-plane node takes the pods.
func workers(nodes int) int {
	if nodes == 1 {
		return 0
	}
	return nodes
}

func startExisting(ctx context.Context, o Options) (cluster.Cluster, error) {
	c, err := existing.Start(ctx, o.existing())
	if err != nil {
		return nil, err
	}
	return c, nil
}

func upstreamVersions(o Options) (map[string]string, error) {
	return UpstreamVersions(o.UpstreamDir), nil
}

// UpstreamVersions returns the versions of the upstream programs that gauntlet uses, with the
// keys etcd, kubernetes and kwok. UpstreamDir is the user's directory of these programs, whose
// versions are unknown; "" means the cache that harness/upstream fills.
func UpstreamVersions(upstreamDir string) map[string]string { return embedded.Versions(upstreamDir) }

// UpstreamControllerManager returns the path of upstream's kube-controller-manager. Its error
// says how to build it.
func UpstreamControllerManager(upstreamDir string) (string, error) {
	binaries, err := embedded.FindBinaries(upstreamDir)
	if err != nil {
		return "", err
	}
	return binaries.KubeControllerManager, nil
}

// Existing is the name of the provider that uses an existing cluster.
const Existing = existing.Name

// Default returns the name of the default provider.
func Default() string { return All[0].Name }

// Names returns the names of all providers.
func Names() []string { return With() }

// With returns the names of the providers that have all given capabilities, for error
// messages and documentation.
func With(needed ...cluster.Capability) []string {
	var names []string
	for _, p := range All {
		if p.Capabilities.Has(needed...) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Alternatives returns a text for the end of an error message. For a [cluster.MissingError],
// it lists the providers with the needed capabilities. It is "" for other errors.
func Alternatives(err error) string {
	var missing *cluster.MissingError
	if !errors.As(err, &missing) {
		return ""
	}
	return "; expected --provider=" + strings.Join(With(missing.Needed...), " or ")
}

// Named returns the provider with a name. Its error lists all names.
func Named(name string) (Provider, error) {
	i := slices.IndexFunc(All, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, fmt.Errorf("provider %q: expected %s", name, strings.Join(Names(), " or "))
	}
	return All[i], nil
}

// NamedWith returns the provider with a name, which must have all given capabilities. Its
// error lists the names of the providers that have them.
func NamedWith(name string, needed ...cluster.Capability) (Provider, error) {
	p, err := Named(name)
	if err != nil || !p.Capabilities.Has(needed...) {
		return Provider{}, fmt.Errorf("provider %q: expected %s", name, strings.Join(With(needed...), " or "))
	}
	return p, nil
}
