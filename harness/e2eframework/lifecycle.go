package e2eframework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// provider implements the methods that the providers for embedded, kind and existing clusters
// share. Only the field reserved may be used by several goroutines at the same time.
type provider struct {
	self          support.E2EClusterProvider // the provider that embeds this one, such as a *kindProvider
	name          string                     // name of the provider in gauntlet, such as "kind"
	contextPrefix string                     // prefix of the kubeconfig context, such as "kind-"; the name of the cluster follows
	// locate sets the options that say where the cluster or its executables are, such as the
	// kubeconfig. It is nil for kind clusters.
	locate func(*providers.Options)
	// usersKubeconfig is true for an existing cluster, which the user's kubeconfig selects.
	usersKubeconfig bool

	clusterName, version, path string // the values of WithName, WithVersion and WithPath
	nodes                      int
	nodeImage, context         string
	kindConfig                 *v1alpha4.Cluster          // the configuration of CreateWithConfig, or nil
	changes                    []func(*providers.Options) // the functions of WithControlPlane
	logDir                     string
	seed                       uint64

	environment *environment.Environment // the running cluster; nil until Create, and after Destroy
	release     context.CancelFunc       // cancels the context of environment; nil if environment is nil
	reserved    atomic.Pointer[string]   // the feature or scenario that uses the cluster, or nil
	kubeconfigs int                      // number of kubeconfig files that GenerateKubeconfig has written
	kubeconfig  string                   // path of the first kubeconfig file
}

func (p *provider) base() *provider { return p }

// SetDefaults sets the number of nodes to 1, unless [WithNodes] has set it.
func (p *provider) SetDefaults() support.E2EClusterProvider {
	p.nodes = max(p.nodes, 1)
	return p.self
}

// WithName sets the name of the cluster. The kubeconfig context has the same name, or kind-NAME for
// a kind cluster.
func (p *provider) WithName(name string) support.E2EClusterProvider {
	p.clusterName = name
	return p.self
}

// WithVersion requires a Kubernetes version, such as v1.36.3. Create returns an error if the
// cluster has another version. Versions v0.x, which are versions of the command kind, have no
// effect.
func (p *provider) WithVersion(version string) support.E2EClusterProvider {
	p.version = version
	return p.self
}

// WithPath sets the path of the executables or of the kubeconfig. The meaning depends on the
// provider; see [NewEmbedded], [NewKind] and [NewExisting].
func (p *provider) WithPath(path string) support.E2EClusterProvider {
	p.path = path
	return p.self
}

// WithOpts applies options of this package, such as [WithNodes]. Options of other packages have no
// effect.
func (p *provider) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, opt := range opts {
		opt(p.self)
	}
	return p.self
}

// Create starts the cluster and returns the path of a kubeconfig with all permissions. If Create
// fails or ctx is canceled, it removes everything that it has created. Create accepts no args,
// and returns an error if there are any.
//
// If the cluster exists, Create only returns the path of its kubeconfig.
func (p *provider) Create(ctx context.Context, args ...string) (string, error) {
	if p.environment != nil {
		return p.kubeconfig, nil
	}
	if len(args) > 0 {
		return "", fmt.Errorf("creating cluster %s: found the argument %q; expected no arguments; use options such as WithNodes instead", p.clusterName, args[0])
	}
	if err := p.checkVersion(); err != nil {
		return "", err
	}
	if err := p.setUp(ctx); err != nil {
		return "", fmt.Errorf("creating cluster %s: %w", p.clusterName, err)
	}
	if err := p.start(ctx); err != nil {
		return "", fmt.Errorf("creating cluster %s: %w", p.clusterName, err)
	}
	var err error
	if p.kubeconfig, err = p.GenerateKubeconfig(); err != nil {
		return "", errors.Join(err, p.Destroy(ctx))
	}
	return p.kubeconfig, nil
}

// start starts the environment, which contains the cluster. If ctx is canceled, the start ends
// early. After the start, the environment does not depend on ctx, which may be the context of one
// step.
func (p *provider) start(ctx context.Context) error {
	outlives, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	e, err := environment.Start(outlives, environment.Options{
		Provider: p.name, ControlPlane: p.controlPlane(), LogDir: p.logDir, Seed: p.seed,
	})
	if !stop() && err == nil { // ctx was canceled at the very end
		err = errors.Join(context.Cause(ctx), e.Stop(ctx))
	}
	if err != nil {
		cancel()
		return err
	}
	p.environment, p.release = e, cancel
	return nil
}

// setUp builds the programs that the cluster needs, if they are missing.
func (p *provider) setUp(ctx context.Context) error {
	of, err := providers.Named(p.name)
	if err != nil {
		return err
	}
	return of.Setup(ctx, p.controlPlane())
}

// controlPlane returns the options of the control plane. By default, the control plane runs all
// controllers of Kubernetes.
func (p *provider) controlPlane() providers.Options {
	o := providers.Options{
		Nodes: p.nodes, NodeImage: p.nodeImage, KindConfig: p.kindConfig,
		Controllers: []kube.Controller{}, DNS: true,
	}
	if p.locate != nil {
		p.locate(&o)
	}
	for _, change := range p.changes {
		change(&o)
	}
	return o
}

// checkVersion returns an error if the cluster's version would differ from the version of
// WithVersion.
func (p *provider) checkVersion() error {
	if p.version == "" || strings.HasPrefix(p.version, "v0.") {
		return nil // v0.x is a version of the command kind, which no provider of this package uses
	}
	of, err := providers.Named(p.name)
	if err != nil {
		return err
	}
	versions, err := of.Versions(p.controlPlane())
	if err != nil {
		return err
	}
	if found := versions["kubernetes"]; found != p.version {
		return fmt.Errorf("creating cluster %s: the provider has Kubernetes %s; expected %s, as WithVersion requires", p.clusterName, found, p.version)
	}
	return nil
}

// GenerateKubeconfig writes a new kubeconfig file and returns its path. Destroy removes the file.
// GenerateKubeconfig accepts no args, and returns an error if there are any.
func (p *provider) GenerateKubeconfig(args ...string) (string, error) {
	if err := p.created(); err != nil {
		return "", err
	}
	if len(args) > 0 {
		return "", fmt.Errorf("generating a kubeconfig of cluster %s: found the argument %q; expected no arguments", p.clusterName, args[0])
	}
	config, err := p.adminKubeconfig()
	if err != nil {
		return "", fmt.Errorf("generating a kubeconfig of cluster %s: %w", p.clusterName, err)
	}
	p.renameContext(config)
	path := filepath.Join(p.environment.StateDir, fmt.Sprintf("e2e-%d.kubeconfig", p.kubeconfigs))
	p.kubeconfigs++
	return path, clientcmd.WriteToFile(*config, path)
}

// adminKubeconfig returns the content of the kubeconfig files that GenerateKubeconfig writes. It
// has one context and all permissions. For an existing cluster, it has one context of the user's
// kubeconfig, with the user's credentials.
func (p *provider) adminKubeconfig() (*api.Config, error) {
	if !p.usersKubeconfig {
		data, err := cluster.Kubeconfig(p.environment.Cluster.Config(cluster.Admin))
		if err != nil {
			return nil, err
		}
		return clientcmd.Load(data)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.path
	config, err := rules.Load()
	if err != nil {
		return nil, err
	}
	config.CurrentContext = cmp.Or(p.context, config.CurrentContext)
	return config, errors.Join(api.MinifyConfig(config), api.FlattenConfig(config))
}

// renameContext gives the only cluster, user and context in config the name that
// [provider.GetKubectlContext] returns. It does not change the user's kubeconfig of an existing
// cluster.
func (p *provider) renameContext(config *api.Config) {
	if p.usersKubeconfig {
		p.context = config.CurrentContext
		return
	}
	name := p.GetKubectlContext()
	for _, old := range slices.Collect(maps.Keys(config.Contexts)) {
		of := config.Contexts[old]
		config.Clusters = map[string]*api.Cluster{name: config.Clusters[of.Cluster]}
		config.AuthInfos = map[string]*api.AuthInfo{name: config.AuthInfos[of.AuthInfo]}
		of.Cluster, of.AuthInfo = name, name
		config.Contexts = map[string]*api.Context{name: of}
	}
	config.CurrentContext = name
}

// GetKubeconfig returns the path of the kubeconfig that Create has written. It returns "" before
// Create and after Destroy.
func (p *provider) GetKubeconfig() string { return p.kubeconfig }

// GetKubectlContext returns the name of the context in the kubeconfig, such as kind-demo.
func (p *provider) GetKubectlContext() string {
	if p.usersKubeconfig {
		return p.context
	}
	return p.contextPrefix + p.clusterName
}

// KubernetesRestConfig returns a client configuration with all permissions, or nil before Create.
func (p *provider) KubernetesRestConfig() *rest.Config {
	if p.environment == nil {
		return nil
	}
	return p.environment.Cluster.Config(cluster.Admin)
}

// WaitForControlPlane returns nil if all components of the control plane are healthy.
func (p *provider) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	if err := p.created(); err != nil {
		return err
	}
	return p.environment.Cluster.Health(ctx)
}

// ExportLogs writes the logs of all components to the directory dest. It creates dest if necessary.
func (p *provider) ExportLogs(ctx context.Context, dest string) error {
	if err := p.created(); err != nil {
		return err
	}
	if err := os.MkdirAll(dest, 0o755); err != nil {
		return fmt.Errorf("exporting the logs of cluster %s: %w", p.clusterName, err)
	}
	if exporter, ok := p.environment.Cluster.(cluster.LogExporter); ok {
		return exporter.ExportLogs(ctx, dest)
	}
	logs, err := fs.Glob(os.DirFS(p.environment.LogDir), "*.log")
	if err != nil {
		return err
	}
	for _, log := range logs {
		data, err := os.ReadFile(filepath.Join(p.environment.LogDir, log))
		if err == nil {
			err = os.WriteFile(filepath.Join(dest, log), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("exporting the logs of cluster %s: %w", p.clusterName, err)
		}
	}
	return nil
}

// Destroy stops the cluster and removes its files, even if ctx is canceled. A second call does
// nothing.
func (p *provider) Destroy(ctx context.Context) error {
	if p.environment == nil {
		return nil
	}
	e := p.environment
	p.environment, p.kubeconfig = nil, ""
	defer p.release()
	if err := e.Stop(ctx); err != nil {
		return fmt.Errorf("destroying cluster %s: %w", p.clusterName, err)
	}
	return nil
}

// created returns nil between Create and Destroy. Otherwise, it returns an error that says that the
// cluster does not exist.
func (p *provider) created() error {
	if p.environment == nil {
		return fmt.Errorf("cluster %s does not exist; call Create first", p.clusterName)
	}
	return nil
}
