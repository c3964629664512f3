// Package e2eframework lets test suites of sigs.k8s.io/e2e-framework use the clusters of gauntlet.
//
// A test suite of that framework creates a cluster with one of these providers:
//
//	testenv.Setup(envfuncs.CreateCluster(e2eframework.NewEmbedded(), "demo"))
//	testenv.Finish(envfuncs.DestroyCluster("demo"))
//
// No process, container or file of a cluster is left, even if the test binary is killed.
package e2eframework

import (
	"context"
	"fmt"

	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
)

// NewEmbedded returns a provider of control planes that run as processes of this machine.
//
// The processes are etcd, kube-apiserver, kube-scheduler, kube-controller-manager and simulated
// kubelets. A cluster needs no container engine, and starts in about 3 seconds. Its pods become
// Ready, but no containers run. Loading an image therefore does nothing.
//
// The method WithPath sets the directory of the executables. The default is the cache that
// `gauntlet setup` fills. Create builds programs that are missing there, which takes minutes
// once.
func NewEmbedded() support.E2EClusterProvider {
	e := &embeddedProvider{nodeProvider{provider{name: providers.Embedded}}}
	e.self, e.locate = e, func(o *providers.Options) { o.UpstreamDir = e.path }
	return e
}

// NewKind returns a provider of kind clusters. Each cluster has a container network of its own. The
// node image is the one that `make node-image` builds without a registry; see [WithNodeImage].
//
// The method WithPath has no effect, because kind is linked into the test binary.
func NewKind() support.E2EClusterProvider {
	k := &kindProvider{nodeProvider{provider{name: providers.Kind, contextPrefix: "kind-"}}}
	k.self = k
	return k
}

// NewExisting returns a provider that uses an existing cluster. Create adds the namespace gauntlet,
// which prevents a second suite or run from using the cluster. Destroy deletes this namespace, and
// does not delete the cluster.
//
// The method WithPath sets the path of the kubeconfig. The default is that of kubectl. See also
// [WithContext].
func NewExisting() support.E2EClusterProvider {
	p := &provider{name: providers.Existing, usersKubeconfig: true}
	p.self, p.locate = p, func(o *providers.Options) {
		o.Existing = cluster.Existing{Kubeconfig: p.path, Context: p.context}
	}
	return p
}

// Environment returns the environment of a cluster that a provider of this package has created. Use
// it for parts of the API that this package does not wrap, such as a fault proxy of the suite's own.
func Environment(ctx context.Context, name string) (*environment.Environment, error) {
	p, err := createdProvider(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.environment, nil
}

// createdProvider returns the provider that has created the named cluster of the context.
func createdProvider(ctx context.Context, name string) (*provider, error) {
	found, ok := envfuncs.GetClusterFromContext(ctx, name)
	if !ok {
		return nil, fmt.Errorf("found no cluster %q in the context; expected testenv.Setup(envfuncs.CreateCluster(provider, %q))", name, name)
	}
	of, ok := found.(interface{ base() *provider })
	if !ok {
		return nil, fmt.Errorf("cluster %q: found provider %T; expected one of package e2eframework", name, found)
	}
	return of.base(), of.base().created()
}

// New returns the provider of this package with a given name, one of providers.Names(). It is
// for suites that choose their provider with a flag.
func New(name string) (support.E2EClusterProvider, error) {
	constructors := map[string]func() support.E2EClusterProvider{
		providers.Embedded: NewEmbedded, providers.Kind: NewKind, providers.Existing: NewExisting,
	}
	if _, err := providers.Named(name); err != nil {
		return nil, err
	}
	return constructors[name](), nil
}

// The providers implement all interfaces of the framework that they can.
var (
	_ support.E2EClusterProviderWithImageLoader = (*embeddedProvider)(nil)
	_ support.E2EClusterProviderWithLifeCycle   = (*embeddedProvider)(nil)
	_ support.E2EClusterProviderWithImageLoader = (*kindProvider)(nil)
	_ support.E2EClusterProviderWithLifeCycle   = (*kindProvider)(nil)
)

// WithNodes sets the number of nodes that run pods, at least 1. The default is 1. It has no
// effect on an existing cluster.
//
// In a kind cluster with one such node, the control-plane node runs the pods.
func WithNodes(nodes int) support.ClusterOpts {
	return option(func(p *provider) { p.nodes = nodes })
}

// WithNodeImage sets the image of the nodes of a kind cluster.
func WithNodeImage(image string) support.ClusterOpts {
	return option(func(p *provider) { p.nodeImage = image })
}

// WithContext sets the kubeconfig context of an existing cluster. Empty means the current context.
// For the framework's flag --context, the argument is envconf.Config.KubeContext.
func WithContext(context string) support.ClusterOpts {
	return option(func(p *provider) { p.context = context })
}

// WithControlPlane changes the options of the control plane. For example, Controllers lists the
// controllers of Kubernetes that the control plane does not run, because the suite tests its own.
func WithControlPlane(change func(*providers.Options)) support.ClusterOpts {
	return option(func(p *provider) { p.changes = append(p.changes, change) })
}

// WithLogDir sets the directory of the logs of all components. Destroy does not remove it. The
// default is a temporary directory, which Destroy removes.
func WithLogDir(dir string) support.ClusterOpts {
	return option(func(p *provider) { p.logDir = dir })
}

// WithSeed sets the random seed of faults that are injected without a scenario.
func WithSeed(seed uint64) support.ClusterOpts {
	return option(func(p *provider) { p.seed = seed })
}

// option returns an option that ignores providers of other packages, as the options of the
// framework's own providers do.
func option(set func(*provider)) support.ClusterOpts {
	return func(c support.E2EClusterProvider) {
		if of, ok := c.(interface{ base() *provider }); ok {
			set(of.base())
		}
	}
}
