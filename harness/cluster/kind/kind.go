// Package kind is a throw-away cluster made by sigs.k8s.io/kind: real kubelets
// and real pods, each node a container of the container engine. Its
// kube-controller-manager runs without the four controllers under test.
//
// Every cluster has a name, a network, keys, tokens and a state directory of its
// own, so that several can run at once, and it never touches the user's
// kubeconfig. The network is also the record of whose a cluster is: it is made
// first and removed last, with labels that say which process made it, so that
// what a killed gauntlet leaves can be told from what another one is using.
//
// The package needs the command `docker`, with an engine on this machine: the
// API server is reached on 127.0.0.1, and a node mounts a file of the state
// directory. It does not deploy the controllers under test.
//
// To read it: start.go is the procedure, config.go what kind and kubeadm are
// told, network.go how pods are connected, halt.go how parts are out of order for a
// time, remains.go what outlives a process.
package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// Cluster is a running kind cluster. See [Start].
type Cluster struct {
	name   string // of this cluster, its network, and the stem of its nodes' names
	engine engine
	nodes  []string // control plane first; the names of their containers too
	image  string
	dir    string // the state
	logDir string
	tokens cluster.Tokens
	// release ends the guard's hold on what must not outlive gauntlet.
	release func()

	// host and authority are the API server's; set when kind has made it.
	host      string
	authority []byte

	failed   chan struct{}
	stopOnce sync.Once
	stopErr  error

	breaking sync.Mutex // held while parts are halted and resumed

	mu       sync.Mutex
	halted   map[cluster.Part]bool
	away     map[string]bool   // nodes that run and of which nothing is heard
	watches  map[string]*watch // of the nodes' containers
	stopping bool
	err      error // why failed is closed
}

var _ cluster.Cluster = (*Cluster)(nil)

// Name is "kind".
func (c *Cluster) Name() string { return "kind" }

// ID is the cluster's own name, as `gauntlet down` takes it.
func (c *Cluster) ID() string { return c.name }

// Image is the node image.
func (c *Cluster) Image() string { return c.image }

// Nodes are the names of the nodes, the control plane's first.
func (c *Cluster) Nodes() []string { return slices.Clone(c.nodes) }

// Kubeconfig is the path of the admin's kubeconfig. It goes with the cluster.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, kubeconfigFile) }

// Config returns a client configuration for a role, straight to the API server.
// As on the embedded control plane each role is a user with a token, which, other
// than a certificate, also gets through the fault proxy.
func (c *Cluster) Config(role cluster.Role) *rest.Config {
	return &rest.Config{
		Host:            c.host,
		BearerToken:     c.tokens[role],
		TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(c.authority)},
		WarningHandler:  rest.NoWarnings{},
		UserAgent:       "gauntlet-" + string(role),
		QPS:             -1,
	}
}

// Failed is closed when a node ends that was not asked to.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err is nil until Failed is closed, then which node ended and why.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail notes the first death that nobody asked for.
func (c *Cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.err != nil {
		return
	}
	c.err = err
	close(c.failed)
}

// untilFailed returns a context that also ends when the cluster fails, with the
// reason for a cause.
func (c *Cluster) untilFailed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.failed:
			cancel(c.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Health waits until the API server answers ready, which it does when etcd does,
// every node is well that is not meant to be down, and the kubelet says that the
// other parts of the control plane are.
func (c *Cluster) Health(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	stopping := c.stopping
	c.mu.Unlock()
	if stopping {
		return errors.New("the cluster has been stopped")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, healthWithin, fmt.Errorf("not within %s", healthWithin))
	defer cancel()
	return c.whole(ctx)
}

// nodesReady is nil when every node is well that is not meant to be down.
func (c *Cluster) nodesReady(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("asking for the nodes: %w", err)
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; !c.isAway(node.Name) {
			if err := cluster.NodeHealthy(node); err != nil {
				return fmt.Errorf("%w; the end of its kubelet's log:\n%s", err, c.kubeletLog(ctx, node.Name))
			}
		}
	}
	return nil
}

// Stop writes the logs and removes the cluster: its nodes, its network and its
// state directory. It goes on when ctx has ended; an engine that hangs makes it
// give up within logsWithin and 2 * engineWorkMax.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		ctx := context.WithoutCancel(ctx)
		c.mu.Lock()
		c.stopping = true
		broken := c.err != nil
		c.mu.Unlock()
		c.writeLogs(ctx, broken)
		err := c.engine.remove(ctx, c.name)
		err = errors.Join(err, c.unwatchAll(ctx), os.RemoveAll(c.dir))
		if err != nil {
			c.stopErr = fmt.Errorf("removing the kind cluster %s (`gauntlet clean` removes what is left of it): %w", c.name, err)
			return
		}
		c.release()
	})
	return c.stopErr
}

// remove removes a cluster's nodes and then its network, which is the record
// that there is something to remove.
func (e engine) remove(ctx context.Context, name string) error {
	if err := e.removeNodes(ctx, name); err != nil {
		return err
	}
	if _, err := e.run(ctx, engineWorkMax, "network", "rm", name); err != nil && !errors.Is(err, errNotAnyMore) {
		return err
	}
	return nil
}

func (e engine) removeNodes(ctx context.Context, name string) error {
	containers, err := e.lines(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+nodeLabel+"="+name)
	if err != nil || len(containers) == 0 {
		return err
	}
	var frozen error // it may go all the same
	for _, container := range containers {
		frozen = errors.Join(frozen, thaw(container))
	}
	args := append([]string{"rm", "--force", "--volumes"}, containers...)
	if _, err := e.run(ctx, engineWorkMax, args...); err != nil && !errors.Is(err, errNotAnyMore) {
		return errors.Join(err, frozen)
	}
	return nil
}
