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

// attemptsMax bounds the starts that a taken port makes begin anew.
const attemptsMax = 3

// The files in the state directory. Those that a node gets to see are in a
// directory of their own.
const (
	sharedDir      = "node"
	kubeconfigFile = "kubeconfig"
)

// Start makes a cluster and returns when it is ready: the API server and the
// rest of the control plane answer ready, every node is Ready, and a pod has run
// on each that takes pods. On an error nothing is left. Cancelling ctx afterwards
// does nothing to the cluster: Stop it.
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
		if !errors.Is(err, errPortTaken) || attempt == attemptsMax {
			return nil, fmt.Errorf("kind cluster: %w", err)
		}
	}
}

// startOnce is one attempt, with a name, a network and tokens of its own.
func startOnce(ctx context.Context, opts Options) (*Cluster, error) {
	c, err := prepare(ctx, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Within, fmt.Errorf("not ready within %s", opts.Within))
	defer cancel()
	if err := c.bringUp(ctx, opts); err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			err = c.diagnose(context.WithoutCancel(ctx), err)
			c.fail(err) // which makes Stop write all the logs there are
		}
		return nil, errors.Join(err, c.Stop(ctx))
	}
	if opts.Keep {
		c.release()
	}
	return c, nil
}

// prepare makes the state directory, and the network that says whose the cluster
// is.
func prepare(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{
		name: namePrefix + strings.ToLower(rand.Text()[:8]), image: opts.Image,
		dir: filepath.Join(opts.Dir, "cluster"), logDir: opts.LogDir,
		tokens: cluster.NewTokens(), failed: make(chan struct{}), watches: map[string]*watch{}, halted: map[cluster.Part]bool{}, away: map[string]bool{},
	}
	c.nodes = nodeNames(c.name, opts.Workers)
	// Made here and nowhere else, so that it is safe to remove.
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	var err error
	if c.release, err = c.guard(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	err = errors.Join(
		os.MkdirAll(c.logDir, 0o755),
		os.Mkdir(filepath.Join(c.dir, sharedDir), 0o700),
		os.WriteFile(filepath.Join(c.dir, markerFile), []byte(c.name+"\n"), 0o600),
		os.WriteFile(filepath.Join(c.dir, sharedDir, tokensFile), c.tokens.File(), 0o600),
	)
	if err == nil {
		err = c.makeNetwork(ctx, opts.Keep)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// nodeNames are the names that kind gives the nodes.
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

// bringUp has kind make the cluster and waits until it is ready. The death of a
// node ends it at once.
func (c *Cluster) bringUp(ctx context.Context, opts Options) error {
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
		return fmt.Errorf("making a client: %w", err)
	}
	if err := c.awaitReady(ctx, client); err != nil {
		return err
	}
	// Written last: to whoever looks, a cluster with a kubeconfig is complete.
	return cluster.WriteKubeconfig(c.Kubeconfig(), c.Config(cluster.Admin))
}

// diagnose adds to the error of a start what the kubelets said, if there are any.
func (c *Cluster) diagnose(ctx context.Context, err error) error {
	for _, reason := range []error{errPortTaken, errNoSubnet, errDiskFull, ErrEngineDown} {
		if errors.Is(err, reason) {
			return err // nothing that a kubelet knows more about
		}
	}
	for _, node := range c.nodes {
		if log := c.kubeletLog(ctx, node); log != "" {
			err = fmt.Errorf("%w\nthe end of the kubelet's log on %s:\n%s", err, node, log)
		}
	}
	return err
}

// creating is held while kind makes a cluster: it takes the name of the network
// from the environment, which all of this process shares.
var creating = make(chan struct{}, 1)

const networkVariable = "KIND_EXPERIMENTAL_DOCKER_NETWORK"

// create has kind make the cluster. kind knows no context: when ctx ends, its
// nodes are taken from it until it gives up.
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
	made := make(chan error, 1)
	go func() {
		defer func() { <-creating }()
		defer log.file.Close()
		made <- c.createWithKind(log, kindcluster.CreateWithV1Alpha4Config(config))
	}()
	select {
	case err := <-made:
		return explain(err)
	case <-ctx.Done():
		err := context.Cause(ctx)
		if !errors.Is(ctx.Err(), context.Canceled) {
			// What is there to be seen goes with the nodes.
			err = c.diagnose(context.WithoutCancel(ctx), err)
			c.writeLogs(context.WithoutCancel(ctx), true)
		}
		return errors.Join(err, c.abandon(ctx, made))
	}
}

func (c *Cluster) createWithKind(log *kindLog, config kindcluster.CreateOption) error {
	before := os.Getenv(networkVariable)
	if err := os.Setenv(networkVariable, c.name); err != nil {
		return err
	}
	defer os.Setenv(networkVariable, before) // empty is as good as unset
	provider := kindcluster.NewProvider(kindcluster.ProviderWithLogger(log), kindcluster.ProviderWithDocker())
	kindsConfig := filepath.Join(c.dir, "kind.kubeconfig")
	err := provider.Create(c.name, config,
		kindcluster.CreateWithNodeImage(c.image),
		kindcluster.CreateWithKubeconfigPath(kindsConfig),
		kindcluster.CreateWithRetain(true), // for the logs; Stop removes it
	)
	if err != nil {
		return err
	}
	made, err := clientcmd.BuildConfigFromFlags("", kindsConfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig that kind wrote: %w", err)
	}
	c.host, c.authority = made.Host, made.CAData
	return nil
}

// abandonMax bounds how long kind may take to notice that its nodes are gone.
const abandonMax = 30 * time.Second

// abandon removes the nodes until kind has given up making the cluster.
func (c *Cluster) abandon(ctx context.Context, made <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), abandonMax, fmt.Errorf("it has not within %s", abandonMax))
	defer cancel()
	return poll(ctx, "kind to give up", func(ctx context.Context) error {
		if err := c.engine.removeNodes(ctx, c.name); err != nil {
			return err
		}
		select {
		case <-made: //nolint:errcheck // it says that its nodes are gone
			return nil
		default:
			return errors.New("it is still making the cluster")
		}
	})
}
