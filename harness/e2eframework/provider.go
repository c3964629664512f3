// Package e2eframework lets test suites of sigs.k8s.io/e2e-framework use the clusters of gauntlet.
//
// A test suite creates a cluster with a provider of this package:
//
//	testenv.Setup(envfuncs.CreateCluster(e2eframework.NewEmbedded(), "demo"))
//	testenv.Finish(envfuncs.DestroyCluster("demo"))
//
// After the suite, no process, container or file of the cluster remains, even if the test binary is
// killed.
package e2eframework

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// NewEmbedded returns a provider of clusters that run as processes on this machine, without
// containers.
//
// The processes are etcd, kube-apiserver, kube-scheduler, kube-controller-manager and simulated
// kubelets. A cluster needs no container engine, and starts in about 3 seconds. Pods become Ready,
// but no containers run. Loading an image therefore does nothing.
//
// The method WithPath sets the directory of the executables. The default is the cache that
// `gauntlet setup` fills. Create builds programs that are missing in the cache, which takes minutes
// the first time.
func NewEmbedded() support.E2EClusterProvider {
	e := &embeddedProvider{nodeProvider{provider{name: providers.Embedded}}}
	e.self, e.locate = e, func(o *providers.Options) { o.UpstreamDir = e.path }
	return e
}

// NewKind returns a provider of kind clusters. Each cluster has its own container network.
// [WithNodeImage] sets the node image. The default is the image that `make node-image` has built,
// or else an image of the kind project.
//
// The method WithPath has no effect, because kind is linked into the test binary.
func NewKind() support.E2EClusterProvider {
	k := &kindProvider{nodeProvider{provider{name: providers.Kind, contextPrefix: "kind-"}}}
	k.self = k
	return k
}

// NewExisting returns a provider that uses an existing cluster. Create creates the namespace
// gauntlet, which locks the cluster against other suites and runs. Destroy deletes this namespace,
// but not the cluster.
//
// The method WithPath sets the path of the kubeconfig. The default is the kubeconfig that kubectl
// would use. See also [WithContext].
func NewExisting() support.E2EClusterProvider {
	p := &provider{name: providers.Existing, usersKubeconfig: true}
	p.self, p.locate = p, func(o *providers.Options) {
		o.Existing = cluster.Existing{Kubeconfig: p.path, Context: p.context}
	}
	return p
}

// Environment returns the environment of a cluster that a provider of this package has created. It
// gives access to functions that this package does not wrap, such as a fault proxy without [Chaos].
func Environment(ctx context.Context, name string) (*environment.Environment, error) {
	p, err := createdProvider(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.environment, nil
}

// createdProvider returns the provider of the named cluster, which envfuncs.CreateCluster has
// stored in ctx. It returns an error if there is no such cluster, or if the provider is not of
// this package.
func createdProvider(ctx context.Context, name string) (*provider, error) {
	found, ok := envfuncs.GetClusterFromContext(ctx, name)
	if !ok {
		return nil, fmt.Errorf("found no cluster %q in the context; call testenv.Setup(envfuncs.CreateCluster(provider, %q)) first", name, name)
	}
	of, ok := found.(interface{ base() *provider })
	if !ok {
		return nil, fmt.Errorf("cluster %q: found a provider of type %T; expected a provider of package e2eframework", name, found)
	}
	return of.base(), of.base().created()
}

// New returns a provider by name: "embedded", "kind" or "existing". It is for suites that choose
// their provider with a flag.
func New(name string) (support.E2EClusterProvider, error) {
	constructors := map[string]func() support.E2EClusterProvider{
		providers.Embedded: NewEmbedded, providers.Kind: NewKind, providers.Existing: NewExisting,
	}
	create := constructors[name]
	if create == nil {
		names := slices.Sorted(maps.Keys(constructors))
		return nil, fmt.Errorf("provider %q: expected %s%s", name, nearest.List(names, "or"), nearest.Suggestion(name, names))
	}
	return create(), nil
}

// The providers that can load images and start nodes implement the framework's interfaces for these
// tasks.
var (
	_ support.E2EClusterProviderWithImageLoader = (*embeddedProvider)(nil)
	_ support.E2EClusterProviderWithLifeCycle   = (*embeddedProvider)(nil)
	_ support.E2EClusterProviderWithImageLoader = (*kindProvider)(nil)
	_ support.E2EClusterProviderWithLifeCycle   = (*kindProvider)(nil)
)

// WithNodes sets the number of nodes that run pods, at least 1. The default is 1. WithNodes has no
// effect on an existing cluster.
//
// In a kind cluster with WithNodes(1), the control plane node runs the pods.
func WithNodes(nodes int) support.ClusterOpts {
	return option(func(p *provider) { p.nodes = nodes })
}

// WithNodeImage sets the container image that the nodes of a kind cluster run.
func WithNodeImage(image string) support.ClusterOpts {
	return option(func(p *provider) { p.nodeImage = image })
}

// WithContext sets the kubeconfig context of an existing cluster. Empty means the current context.
// To support the framework's flag --context, pass envconf.Config.KubeContext.
func WithContext(context string) support.ClusterOpts {
	return option(func(p *provider) { p.context = context })
}

// WithControlPlane changes the options of the control plane. For example, the option Controllers
// lists controllers of Kubernetes that the control plane does not run. A suite needs it to test its
// own version of such a controller.
func WithControlPlane(change func(*providers.Options)) support.ClusterOpts {
	return option(func(p *provider) { p.changes = append(p.changes, change) })
}

// WithLogDir sets the directory for the logs of all components. Destroy does not remove this
// directory. The default is a temporary directory, which Destroy removes.
func WithLogDir(dir string) support.ClusterOpts {
	return option(func(p *provider) { p.logDir = dir })
}

// WithSeed sets the random seed of faults that the suite injects with [Inject], or through
// [Environment].
func WithSeed(seed uint64) support.ClusterOpts {
	return option(func(p *provider) { p.seed = seed })
}

// option returns an option of a cluster. The option calls the argument set with a provider of
// this package. It ignores providers of other packages, as the framework's own options do.
func option(set func(*provider)) support.ClusterOpts {
	return func(c support.E2EClusterProvider) {
		if of, ok := c.(interface{ base() *provider }); ok {
			set(of.base())
		}
	}
}
