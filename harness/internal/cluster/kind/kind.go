// Package kind creates clusters with sigs.k8s.io/kind, and removes them after the run.
//
// Each node of a cluster is a container with a real kubelet, which runs real pods. The cluster's
// own kube-controller-manager does not run the controllers under test.
//
// Every cluster has its own name, network, keys, tokens and state directory, so several clusters
// can run at the same time. The package never changes the user's kubeconfig.
//
// The labels of the cluster's container network identify the gauntlet process that created the
// cluster. Start creates the network first, and Stop removes the network last. `gauntlet clean` can
// therefore tell a cluster in use from the leftovers of a killed process.
//
// The package needs the command `docker`. The container engine must run on the same machine as
// gauntlet: gauntlet connects to the API server on 127.0.0.1, and mounts a local directory into a
// node. The package does not start the controllers under test.
//
// start.go contains the start procedure, config.go the configuration of kind and kubeadm, and
// network.go the pod network. halt.go contains the functions with which faults kill and restart
// components. leftovers.go removes clusters of killed processes.
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

// Cluster is a running kind cluster. [Start] returns it.
type Cluster struct {
	name   string // name of the cluster and of its container network, and prefix of the node names
	engine engine
	nodes  []string // names of the Node objects and of their containers; the control plane node is first
	image  string   // name of the node image
	dir    string   // directory for the state of the cluster, such as its kubeconfig
	logDir string   // directory of the log files
	tokens cluster.Tokens
	// unguard tells the guard process that it need no longer remove the cluster if gauntlet dies.
	unguard func()

	// host is the URL of the API server, and authority is the API server's CA certificate as PEM.
	// The two fields are empty until kind has created the cluster.
	host      string
	authority []byte

	failed   chan struct{} // closed when the container of a node exits unexpectedly
	stopOnce sync.Once
	stopErr  error // the error that the first call of Stop returned

	halting sync.Mutex // held during Halt and Resume

	mu          sync.Mutex                 // guards the fields of Cluster below this one
	halted      map[cluster.Component]bool // components that Halt has killed and Resume has not yet started
	unreachable map[string]bool            // running nodes that a fault has paused or cut off, and restarted nodes that are not healthy yet
	watches     map[string]*nodeWatch      // the processes that wait for the end of each node's container, by node name
	stopping    bool                       // true as soon as Stop was called
	err         error                      // why the cluster has failed; nil while the channel failed is open
}

var _ cluster.Cluster = (*Cluster)(nil)

// Name is the name of this provider, as in the flag --provider=kind.
const Name = "kind"

// Capabilities lists what every kind cluster supports, such as real kubelets and programs under
// test in pods.
var Capabilities = cluster.Capabilities{
	cluster.OwnsControlPlane, cluster.ControlsAdmission, cluster.RestartsControlPlane, cluster.AccessesEtcd, cluster.ExportsLogs, cluster.StandingClusters, cluster.RunsDetached,
	cluster.RealKubelets, cluster.ControlsContainers, cluster.ControlsKubelets, cluster.StopsMachines, cluster.LoadsImages,
	cluster.SubjectInPods, cluster.PausesSubject, cluster.SkewsClocks,
}

// Name returns "kind", the name of the provider.
func (c *Cluster) Name() string { return Name }

// Capabilities returns the variable [Capabilities].
func (c *Cluster) Capabilities() cluster.Capabilities { return Capabilities }

// ID returns the name with which `gauntlet down NAME` stops this cluster.
func (c *Cluster) ID() string { return c.name }

// Image returns the name of the container image that all nodes run.
func (c *Cluster) Image() string { return c.image }

// Nodes returns the names of all nodes. The control plane node is first.
func (c *Cluster) Nodes() []string { return slices.Clone(c.nodes) }

// Kubeconfig returns the path of a kubeconfig file for the user with all permissions (role
// cluster.Admin). [Cluster.Stop] removes the file.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, kubeconfigFile) }

// Config returns a client configuration for a role. A role is a user of the cluster with its own
// token, such as cluster.Subject for the controllers under test. Clients with this configuration
// connect directly to the API server, not through the fault proxy. They authenticate with a token,
// because the fault proxy cannot forward client certificates.
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

// Err returns nil until the channel that Failed returns is closed. Then the error names the node
// whose container exited, with the exit status.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail marks the cluster as failed, because a node has exited unexpectedly. It sets c.err to err
// and closes the channel c.failed. After Stop or an earlier call, fail does nothing.
func (c *Cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.err != nil {
		return
	}
	c.err = err
	close(c.failed)
}

// untilFailed returns a context that is canceled when ctx is canceled or a node exits unexpectedly.
// After such an exit, context.Cause of the new context is c.Err().
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

// Health waits at most 3 minutes ([healthTimeout]) until the control plane and the nodes are
// healthy.
//
// The API server's /readyz must succeed, which also checks etcd. The pods of kube-scheduler and
// kube-controller-manager must be Ready. Health ignores nodes that a fault has killed, paused or
// cut off.
func (c *Cluster) Health(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	stopping := c.stopping
	c.mu.Unlock()
	if stopping {
		return fmt.Errorf("checking the health of kind cluster %s: the cluster has been stopped", c.name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, healthTimeout, fmt.Errorf("the control plane was not healthy within %s", healthTimeout))
	defer cancel()
	return c.awaitHealthy(ctx)
}

// nodesReady returns nil if all nodes are healthy. Nodes that a fault has killed, paused or cut off
// do not count. The error names an unhealthy node, with the end of the kubelet log.
func (c *Cluster) nodesReady(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes of kind cluster %s: %w", c.name, err)
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; !c.isUnavailable(node.Name) {
			if err := cluster.NodeHealthy(node); err != nil {
				return fmt.Errorf("%w; last lines of the kubelet log on this node:\n%s", err, c.kubeletLog(ctx, node.Name))
			}
		}
	}
	return nil
}

// Stop writes the logs to the log directory, and removes the nodes, the network and the state
// directory. Stop completes even if ctx is canceled. If the container engine hangs, Stop returns
// after at most logsTimeout + 3 * engineChangeTimeout, which is 200 s. Only the first call stops
// the cluster; later calls return the same error.
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

// remove removes a cluster: its node containers, and then its container network. The network is
// last, because [List] finds a cluster by its network.
func (e engine) remove(ctx context.Context, name string) error {
	if err := e.removeNodes(ctx, name); err != nil {
		return err
	}
	if _, err := e.run(ctx, engineChangeTimeout, "network", "rm", name); err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	return nil
}

// removeNodes removes the node containers of the named cluster. It first unfreezes their processes,
// because `docker rm` cannot kill frozen processes; see [thaw].
func (e engine) removeNodes(ctx context.Context, name string) error {
	containers, err := e.lines(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+nodeLabel+"="+name)
	if err != nil || len(containers) == 0 {
		return err
	}
	var thawErr error // returned only if the removal fails
	for _, container := range containers {
		thawErr = errors.Join(thawErr, thaw(container))
	}
	args := append([]string{"rm", "--force", "--volumes"}, containers...)
	if _, err := e.run(ctx, engineChangeTimeout, args...); err != nil && !errors.Is(err, errNotFound) {
		return errors.Join(err, thawErr)
	}
	return nil
}
