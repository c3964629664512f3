// Package kind runs an ephemeral cluster with sigs.k8s.io/kind.
//
// The cluster has real kubelets and real pods; each node is a container. Its
// kube-controller-manager runs without the controllers under test.
//
// Every cluster has its own name, network, keys, tokens and state directory, so
// several clusters can run at once. The package never changes the user's kubeconfig.
//
// The labels of the network identify the process that created the cluster. The network
// is created first and removed last. So `gauntlet clean` can distinguish the leftovers
// of a killed process from a cluster that is in use.
//
// The package needs the command `docker` and a container engine on this machine,
// because it connects to the API server on 127.0.0.1 and mounts a directory into a
// node. It does not deploy the controllers under test.
//
// start.go contains the start procedure, config.go the configuration of kind and
// kubeadm, network.go the pod network, halt.go the crash and restart of components,
// and leftovers.go the cleanup after killed processes.
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
	name   string // of the cluster and its network, and prefix of the node names
	engine engine
	nodes  []string // names of the nodes and their containers; the control plane is first
	image  string
	dir    string // the state directory
	logDir string
	tokens cluster.Tokens
	// unguard stops the guard process from removing the cluster.
	unguard func()

	// host and authority belong to the API server. They are set when kind has created
	// the cluster.
	host      string
	authority []byte

	failed   chan struct{}
	stopOnce sync.Once
	stopErr  error

	halting sync.Mutex // held by Halt and Resume

	mu          sync.Mutex
	halted      map[cluster.Part]bool
	unreachable map[string]bool // nodes that run but are silenced or cut off
	watches     map[string]*nodeWatch
	stopping    bool
	err         error // reason for closing failed
}

var _ cluster.Cluster = (*Cluster)(nil)

// Name is the name of this provider.
const Name = "kind"

// Capabilities are the capabilities of this provider.
var Capabilities = cluster.Capabilities{
	cluster.OwnsControlPlane, cluster.RestartsControlPlane, cluster.AccessesEtcd, cluster.ExportsLogs, cluster.StandingClusters, cluster.RunsDetached,
	cluster.RealKubelets, cluster.ControlsContainers, cluster.ControlsKubelets, cluster.StopsMachines, cluster.LoadsImages,
	cluster.SubjectInPods, cluster.PausesSubject, cluster.SkewsClocks,
}

// Name returns [Name].
func (c *Cluster) Name() string { return Name }

// Capabilities returns [Capabilities].
func (c *Cluster) Capabilities() cluster.Capabilities { return Capabilities }

// ID returns the name of this cluster, which `gauntlet down` accepts.
func (c *Cluster) ID() string { return c.name }

// Image returns the node image.
func (c *Cluster) Image() string { return c.image }

// Nodes returns the names of the nodes. The control plane node is first.
func (c *Cluster) Nodes() []string { return slices.Clone(c.nodes) }

// Kubeconfig returns the path of the kubeconfig of the Admin role. Stop removes the file.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, kubeconfigFile) }

// Config returns a client configuration for a role. Requests go directly to the API server.
// Each role is a user with a token. The fault proxy can forward a token, but not a
// client certificate.
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

// Failed returns a channel that is closed when the container of a node exits unexpectedly.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err returns nil until Failed is closed. Afterwards its error says which node exited and
// why.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail stores the first unexpected failure and closes the channel failed.
func (c *Cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.err != nil {
		return
	}
	c.err = err
	close(c.failed)
}

// untilFailed returns a context that is canceled when ctx is canceled or the cluster
// fails. After a failure, context.Cause returns the error of the cluster.
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

// Health waits until the control plane and the nodes are healthy.
// /readyz of the API server covers etcd. The other components must be Ready pods. It
// ignores nodes that are down, silenced or cut off on purpose.
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
	ctx, cancel := context.WithTimeoutCause(ctx, healthTimeout, fmt.Errorf("timed out after %s", healthTimeout))
	defer cancel()
	return c.awaitHealthy(ctx)
}

// nodesReady returns nil if all nodes are healthy, except those that are down on purpose.
func (c *Cluster) nodesReady(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; !c.isUnavailable(node.Name) {
			if err := cluster.NodeHealthy(node); err != nil {
				return fmt.Errorf("%w; last lines of its kubelet log:\n%s", err, c.kubeletLog(ctx, node.Name))
			}
		}
	}
	return nil
}

// Stop writes the logs and removes the nodes, the network and the state directory.
// It continues after ctx is canceled. If the container engine hangs, it returns after
// at most logsTimeout + 2 * engineChangeTimeout.
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
			c.stopErr = fmt.Errorf("removing kind cluster %s (remove the rest with `gauntlet clean`): %w", c.name, err)
			return
		}
		c.unguard()
	})
	return c.stopErr
}

// remove removes the nodes of a cluster and then its network.
// The network is last, because List finds a cluster by its network.
func (e engine) remove(ctx context.Context, name string) error {
	if err := e.removeNodes(ctx, name); err != nil {
		return err
	}
	if _, err := e.run(ctx, engineChangeTimeout, "network", "rm", name); err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	return nil
}

// removeNodes removes the containers of the nodes of a cluster.
func (e engine) removeNodes(ctx context.Context, name string) error {
	containers, err := e.lines(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+nodeLabel+"="+name)
	if err != nil || len(containers) == 0 {
		return err
	}
	var thawErr error // reported only if the removal fails
	for _, container := range containers {
		thawErr = errors.Join(thawErr, thaw(container))
	}
	args := append([]string{"rm", "--force", "--volumes"}, containers...)
	if _, err := e.run(ctx, engineChangeTimeout, args...); err != nil && !errors.Is(err, errNotFound) {
		return errors.Join(err, thawErr)
	}
	return nil
}
