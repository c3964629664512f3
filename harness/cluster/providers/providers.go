// Package providers contains the table of all providers of clusters: embedded, kind, existing and
// virtual.
//
// A provider is the way in which gauntlet gets a cluster. Only users select a provider by name,
// with the flag --provider. Code that depends on a feature of the cluster asks for a capability;
// see [cluster.Capability].
package providers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/pods"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Provider describes one way to get a cluster, such as kind. It contains the functions that start
// clusters.
type Provider struct {
	// Name is the value of the flag --provider, such as "kind".
	Name string
	// Capabilities lists what every cluster of this provider supports.
	Capabilities cluster.Capabilities
	// Flags lists the command line flags that have an effect on this provider, but not on every
	// provider. An example is "node-image".
	Flags []string
	// PodsPerNode is the maximum number of workload pods per node; 0 means no limit.
	PodsPerNode int
	// Serves reports whether the API servers of this provider serve a resource. A nil function means
	// that they serve all resources.
	Serves func(schema.GroupVersionResource) bool
	// Start starts a cluster, but not the controllers under test.
	Start func(context.Context, Options) (cluster.Cluster, error)
	// Setup builds the programs that Start needs, if they are missing. This may take minutes.
	Setup func(context.Context, Options) error
	// Preflight returns an error if Start would fail with these options, for example because a
	// binary is missing. Preflight starts nothing and contacts no cluster.
	Preflight func(Options) error
	// Versions returns the versions of the control plane programs by project: "etcd", "kubernetes"
	// and "kwok". For --provider=existing, the map has only the version of "kubernetes". Versions
	// may be called before Start.
	Versions func(Options) (map[string]string, error)
}

// All contains all providers. The first provider is the default of the flag --provider.
var All = []Provider{
	{
		Name:         embedded.Name,
		Capabilities: embedded.Capabilities,
		Flags:        []string{"upstream-dir", "audit-dir"},
		Start:        startEmbedded,
		Setup: func(ctx context.Context, o Options) error {
			_, err := ControllerManager(ctx, o.UpstreamDir)
			return err
		},
		Preflight: func(o Options) error {
			_, err := embedded.FindBinaries(o.UpstreamDir)
			return err
		},
		Versions: upstreamVersions,
	},
	{
		Name:         kind.Name,
		Capabilities: kind.Capabilities,
		Flags:        []string{"node-image", "dns"},
		PodsPerNode:  90, // a kubelet runs at most 110 pods, including system pods and the subject
		Start:        startKind,
		Setup:        func(context.Context, Options) error { return nil },
		Preflight:    func(Options) error { return nil }, // Start checks the container engine and the image
		Versions:     upstreamVersions,
	},
	{
		Name:         existing.Name,
		Capabilities: existing.Capabilities,
		Flags:        []string{"kubeconfig", "context", "controller-switch", "upstream-dir"}, // upstream-dir contains the subject upstream, which is a local process
		Start:        startExisting,
		Setup:        func(context.Context, Options) error { return nil },
		Preflight:    func(o Options) error { return existing.Preflight(o.existing()) },
		Versions: func(o Options) (map[string]string, error) {
			version, err := existing.Version(o.Existing.Kubeconfig, o.Existing.Context)
			return map[string]string{"kubernetes": version}, err
		},
	},
	{
		Name:         virtual.Name,
		Capabilities: virtual.Capabilities,
		Serves:       virtual.Serves,
		Start:        func(ctx context.Context, _ Options) (cluster.Cluster, error) { return virtual.Start(ctx) },
		Setup:        func(context.Context, Options) error { return nil },
		Preflight:    func(Options) error { return nil }, // package run looks for the program gauntlet-virtual
		Versions:     func(Options) (map[string]string, error) { return UpstreamVersions(""), nil },
	},
}

// startEmbedded starts an embedded cluster. It is the function Start of the entry "embedded" in
// [All].
func startEmbedded(ctx context.Context, o Options) (cluster.Cluster, error) {
	c, err := embedded.Start(ctx, embedded.Options{
		Nodes:         o.Nodes,
		PodStartDelay: o.PodStartDelay,
		PodStopDelay:  o.PodStopDelay,
		Controllers:   o.Controllers,
		Volumes:       o.Volumes,
		Definitions:   o.Definitions,
		Dir:           o.Dir,
		LogDir:        o.LogDir,
		AuditLog:      o.AuditLog,
		BinDir:        o.UpstreamDir,
	})
	if err != nil {
		return nil, err // do not return c: a nil *embedded.Cluster is not a nil Cluster
	}
	return c, nil
}

// startKind creates a kind cluster. It is the function Start of the entry "kind" in [All].
func startKind(ctx context.Context, o Options) (cluster.Cluster, error) {
	c, err := kind.Start(ctx, kind.Options{
		Workers:     workers(o.Nodes),
		Config:      o.KindConfig,
		Image:       o.NodeImage,
		Controllers: o.Controllers,
		Dir:         o.Dir,
		LogDir:      o.LogDir,
		Keep:        o.Standing,
		DNS:         o.DNS,
		Ports:       pods.Ports(o.Relays),
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// workers returns how many worker nodes a kind cluster needs to have the given number of
// schedulable nodes. For one schedulable node, workers returns 0: pods then run on the control
// plane node.
func workers(nodes int) int {
	if nodes == 1 {
		return 0
	}
	return nodes
}

// startExisting prepares an existing cluster for a run, and returns the cluster. It is the
// function Start of the entry "existing" in [All].
func startExisting(ctx context.Context, o Options) (cluster.Cluster, error) {
	c, err := existing.Start(ctx, o.existing())
	if err != nil {
		return nil, err
	}
	return c, nil
}

// upstreamVersions returns the versions of the control plane programs. It is the function
// Versions of the entries "embedded" and "kind" in [All].
func upstreamVersions(o Options) (map[string]string, error) {
	return UpstreamVersions(o.UpstreamDir), nil
}

// UpstreamVersions returns the versions of etcd, Kubernetes and KWOK. The map keys are "etcd",
// "kubernetes" and "kwok".
//
// An empty upstreamDir means the programs that `gauntlet setup` builds. Otherwise, upstreamDir is
// the user's own directory of programs, whose versions are unknown. Each version is then the text
// "as found in DIR".
func UpstreamVersions(upstreamDir string) map[string]string { return embedded.Versions(upstreamDir) }

// UpstreamControllerManager returns the path of an unmodified kube-controller-manager. It searches
// upstreamDir, or the cache that `gauntlet setup` fills if upstreamDir is empty. If the program is
// missing, it returns an error.
func UpstreamControllerManager(upstreamDir string) (string, error) {
	binaries, err := embedded.FindBinaries(upstreamDir)
	if err != nil {
		return "", err
	}
	return binaries.KubeControllerManager, nil
}

// ControllerManager returns the path of an unmodified kube-controller-manager, and builds the
// program if it is missing. A build may take minutes. If upstreamDir is not empty,
// ControllerManager builds nothing: a missing program is an error.
func ControllerManager(ctx context.Context, upstreamDir string) (string, error) {
	path, err := UpstreamControllerManager(upstreamDir)
	if err == nil || upstreamDir != "" {
		return path, err
	}
	if _, err := setup.Upstream(ctx); err != nil {
		return "", err
	}
	return UpstreamControllerManager(upstreamDir)
}

// The names of the providers, so that other programs can select a provider without importing its
// package.
const (
	Embedded = embedded.Name
	Kind     = kind.Name
	Existing = existing.Name
	Virtual  = virtual.Name
)

// Default returns the name of the provider that gauntlet uses without the flag --provider.
func Default() string { return All[0].Name }

// Names returns the names of all providers.
func Names() []string { return With() }

// With returns the names of the providers that have all capabilities in needed. For example,
// error messages list them.
func With(needed ...cluster.Capability) []string {
	var names []string
	for _, p := range All {
		if p.Capabilities.Has(needed...) {
			names = append(names, p.Name)
		}
	}
	return names
}

// CheckFlags returns an error if the user has set a flag that has no effect on the provider p.
// The argument isSet is a function that reports whether the user has set the named flag.
func (p Provider) CheckFlags(isSet func(flag string) bool) error {
	for _, other := range All {
		for _, flag := range other.Flags {
			if isSet(flag) && !slices.Contains(p.Flags, flag) {
				return fmt.Errorf("--%s has no effect on the provider %s; remove the flag, or use --provider=%s", flag, p.Name, nearest.List(withFlag(flag), "or"))
			}
		}
	}
	return nil
}

// withFlag returns the names of the providers on which the named flag has an effect. An error can
// then suggest them.
func withFlag(flag string) []string {
	var names []string
	for _, p := range All {
		if slices.Contains(p.Flags, flag) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Alternatives returns a text that callers append to the message of err. If err wraps a
// [cluster.MissingError], the text lists the providers with the required capabilities, such as ";
// expected --provider=kind". Otherwise, the text is empty.
func Alternatives(err error) string {
	var missing *cluster.MissingError
	if !errors.As(err, &missing) {
		return ""
	}
	return "; expected --provider=" + nearest.List(With(missing.Needed...), "or")
}

// Named returns the provider with the given name. If there is no such provider, the error lists the
// names of all providers.
func Named(name string) (Provider, error) {
	i := slices.IndexFunc(All, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, fmt.Errorf("provider %q: expected %s%s", name, nearest.List(Names(), "or"), nearest.Suggestion(name, Names()))
	}
	return All[i], nil
}

// NamedWith returns the provider with the given name if it has all capabilities in needed.
// Otherwise, the error lists the names of the providers that have these capabilities.
func NamedWith(name string, needed ...cluster.Capability) (Provider, error) {
	p, err := Named(name)
	if err != nil || !p.Capabilities.Has(needed...) {
		return Provider{}, fmt.Errorf("provider %q: expected %s%s", name, nearest.List(With(needed...), "or"), nearest.Suggestion(name, With(needed...)))
	}
	return p, nil
}
