package kind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// attemptsMax is the maximum number of attempts to start a cluster. [Start] tries again only if
// another process uses one of the chosen ports.
const attemptsMax = 3

// The names of files and directories in the state directory of a kind cluster, Options.Dir/cluster.
const (
	sharedDir      = "node"       // directory that kind mounts into the control plane node
	kubeconfigFile = "kubeconfig" // file with the kubeconfig of a user with all permissions (role Admin)
)

// Start creates a cluster and returns when the cluster is ready.
//
// The cluster is ready when all components of the control plane and all nodes are Ready. In
// addition, a test pod must have run on each node that has no taint.
//
// If Start returns an error, it has removed everything that it created, except logs. Canceling ctx
// aborts the start, but does not stop a started cluster; call [Cluster.Stop].
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts, err := opts.absolute()
	if err != nil {
		return nil, err
	}
	if opts.Within == 0 {
		opts.Within = withinDefault
	}
	if opts.Image, err = ChooseImage(ctx, opts.Image); err != nil {
		return nil, fmt.Errorf("kind cluster: %w", err)
	}
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, opts)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, errPortInUse) || attempt == attemptsMax {
			return nil, fmt.Errorf("kind cluster: %w", err)
		}
	}
}

// startOnce makes one attempt to start a cluster, with a new name, network and tokens. If the
// attempt fails, startOnce removes everything that it created, except logs.
func startOnce(ctx context.Context, opts Options) (*Cluster, error) {
	c, err := prepare(ctx, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Within, fmt.Errorf("the cluster was not ready within %s", opts.Within))
	defer cancel()
	if err := c.createAndAwait(ctx, opts); err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			err = c.addKubeletLogs(context.WithoutCancel(ctx), err)
			c.fail(err) // Stop writes all logs of a failed cluster
		}
		return nil, errors.Join(err, c.Stop(ctx))
	}
	if opts.Keep {
		c.unguard()
	}
	return c, nil
}

// prepare creates the state directory and the container network of a new cluster. The returned
// Cluster has no nodes yet. If gauntlet dies, the guard process removes the directory and the
// network.
func prepare(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{
		name: namePrefix + strings.ToLower(rand.Text()[:8]), image: opts.Image,
		dir: filepath.Join(opts.Dir, "cluster"), logDir: opts.LogDir,
		tokens: cluster.NewTokens(), failed: make(chan struct{}), watches: map[string]*nodeWatch{}, halted: map[cluster.Component]bool{}, unreachable: map[string]bool{},
	}
	c.nodes = nodeNames(c.name, len(opts.nodes())-1)
	// Mkdir fails if the directory exists. Stop therefore never removes a directory that prepare
	// has not created.
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the state directory of the kind cluster: %w", err)
	}
	var err error
	if c.unguard, err = c.guard(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	err = errors.Join(
		os.MkdirAll(c.logDir, 0o755),
		os.Mkdir(filepath.Join(c.dir, sharedDir), 0o700),
		os.WriteFile(filepath.Join(c.dir, markerFile), []byte(c.name+"\n"), 0o600),
		os.WriteFile(filepath.Join(c.dir, sharedDir, tokensFile), c.tokens.File(), 0o600),
	)
	if err == nil {
		err = c.createNetwork(ctx, opts.Keep)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// nodeNames returns the names that kind gives to the nodes of a cluster. The control plane node is
// first.
func nodeNames(name string, workers int) []string {
	names := []string{name + "-control-plane"}
	for i := range workers {
		worker := name + "-worker"
		if i > 0 {
			worker += fmt.Sprint(i + 1)
		}
		names = append(names, worker)
	}
	return names
}

// createAndAwait creates the cluster with kind and waits until the cluster is ready (see [Start]).
// If a node's container exits, createAndAwait returns an error at once.
func (c *Cluster) createAndAwait(ctx context.Context, opts Options) error {
	if err := c.create(ctx, opts); err != nil {
		return err
	}
	for _, node := range c.nodes {
		if err := c.watchNode(ctx, node); err != nil {
			return err
		}
	}
	ctx, cancel := c.untilFailed(ctx)
	defer cancel()
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return fmt.Errorf("creating a client for the API server: %w", err)
	}
	if err := c.awaitReady(ctx, client, opts); err != nil {
		return err
	}
	// Write the kubeconfig last, because List considers a cluster complete if its kubeconfig
	// exists.
	return cluster.WriteKubeconfig(c.Kubeconfig(), c.Config(cluster.Admin))
}

// addKubeletLogs appends the last lines of all kubelet logs to err, the error of a failed start.
//
// If the container engine caused the failure, for example because its disk is full, kubelet logs do
// not help. addKubeletLogs then returns err unchanged.
func (c *Cluster) addKubeletLogs(ctx context.Context, err error) error {
	for _, reason := range []error{errPortInUse, errNoSubnet, errDiskFull, ErrEngineDown} {
		if errors.Is(err, reason) {
			return err // the reason is the container engine, not a kubelet
		}
	}
	for _, node := range c.nodes {
		if log := c.kubeletLog(ctx, node); log != "" {
			err = withKubeletLog(err, node, log)
		}
	}
	return err
}

// withKubeletLog appends the end of a node's kubelet log to err. If the log shows that the kubelet
// had too few inotify instances, the new error begins with this reason.
func withKubeletLog(err error, node, log string) error {
	if strings.Contains(strings.ToLower(log), inotifyLimitText) && !errors.Is(err, errInotifyLimit) {
		err = fmt.Errorf("%w: %w", errInotifyLimit, err)
	}
	return fmt.Errorf("%w\nlast lines of the kubelet log on node %s:\n%s", err, node, log)
}

// creating is a lock, so that this process creates only one kind cluster at a time. The channel
// contains one element while the lock is held.
//
// The lock is necessary because kind reads the network's name from an environment variable, which
// the whole process shares.
var creating = make(chan struct{}, 1)

// networkVariable is the environment variable from which kind reads the name of the container
// network.
const networkVariable = "KIND_EXPERIMENTAL_DOCKER_NETWORK"

// create creates the cluster with kind, and cancels the creation when ctx is canceled.
//
// kind's function accepts no context. If ctx is canceled, create therefore removes the nodes, so
// that kind fails, and waits until kind returns.
func (c *Cluster) create(ctx context.Context, opts Options) error {
	config, err := clusterConfig(opts, filepath.Join(c.dir, sharedDir))
	if err != nil {
		return err
	}
	log, err := openKindLog(filepath.Join(c.logDir, "kind.log"))
	if err != nil {
		return err
	}
	select {
	case creating <- struct{}{}:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), log.file.Close())
	}
	created := make(chan error, 1)
	go func() {
		defer func() { <-creating }()
		defer log.file.Close()
		created <- c.createWithKind(log, kindcluster.CreateWithV1Alpha4Config(config))
	}()
	select {
	case err := <-created:
		return explain(err)
	case <-ctx.Done():
		err := context.Cause(ctx)
		if !errors.Is(ctx.Err(), context.Canceled) {
			// Write the logs of the nodes first, because abortCreate removes the nodes.
			err = c.addKubeletLogs(context.WithoutCancel(ctx), err)
			c.writeLogs(context.WithoutCancel(ctx), true)
		}
		return errors.Join(err, c.abortCreate(ctx, created))
	}
}

// createWithKind calls kind, which creates the nodes in the container network of this cluster.
// createWithKind then sets c.host and c.authority from the kubeconfig that kind has written.
func (c *Cluster) createWithKind(log *kindLog, config kindcluster.CreateOption) error {
	before := os.Getenv(networkVariable)
	if err := os.Setenv(networkVariable, c.name); err != nil {
		return err
	}
	defer os.Setenv(networkVariable, before) // before is empty if the variable was unset; kind treats both alike
	provider := kindcluster.NewProvider(kindcluster.ProviderWithLogger(log), kindcluster.ProviderWithDocker())
	kubeconfig := filepath.Join(c.dir, "kind.kubeconfig")
	err := provider.Create(c.name, config,
		kindcluster.CreateWithNodeImage(c.image),
		kindcluster.CreateWithKubeconfigPath(kubeconfig),
		kindcluster.CreateWithRetain(true), // after an error, kind keeps the nodes, so that Stop can write their logs
	)
	if err != nil {
		return err
	}
	created, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig that kind wrote: %w", err)
	}
	c.host, c.authority = created.Host, created.CAData
	return nil
}

// abortTimeout limits how long abortCreate waits for kind to return.
const abortTimeout = 30 * time.Second

// abortCreate removes the nodes until kind returns, because kind itself cannot be canceled. One
// removal is not enough: kind may create further nodes. The argument created is the channel that
// receives kind's error when kind has returned.
func (c *Cluster) abortCreate(ctx context.Context, created <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), abortTimeout, fmt.Errorf("kind did not return within %s", abortTimeout))
	defer cancel()
	return poll(ctx, "kind to return after its nodes were removed", func(ctx context.Context) error {
		if err := c.engine.removeNodes(ctx, c.name); err != nil {
			return err
		}
		select {
		case <-created: //nolint:errcheck // kind only reports that the nodes are missing
			return nil
		default:
			return errors.New("kind is still creating the cluster, although gauntlet has canceled the creation")
		}
	})
}
