package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

const (
	// startTimeout limits the duration of one attempt to start a cluster. An attempt takes about 4
	// s on two idle cores, and longer on a slow or busy machine.
	startTimeout = 2 * time.Minute
	// attemptsMax is the maximum number of attempts to start a cluster. [Start] tries again only if
	// another process uses one of the chosen ports.
	attemptsMax = 5
)

// Start starts an embedded cluster and returns when the cluster is ready.
//
// The cluster is ready when all components are healthy and all nodes are schedulable. In addition,
// kube-controller-manager must have created ServiceAccount default/default.
//
// If Start returns an error, it has stopped all processes. Canceling ctx aborts the start, but does
// not stop a started cluster; call [Cluster.Stop].
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts, err := opts.absolute()
	if err != nil {
		return nil, err
	}
	binaries, err := FindBinaries(opts.BinDir)
	if err != nil {
		return nil, fmt.Errorf("embedded cluster: %w", err)
	}
	if err := checkDiskSpace(opts.Dir, freeBytesMin); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, opts, binaries)
		if err == nil {
			return c, nil
		}
		if !isPortInUse(err) || attempt == attemptsMax {
			return nil, fmt.Errorf("embedded cluster: %w", err)
		}
	}
}

// isPortInUse reports whether err says that a component exited because another process uses its
// port. Start then tries other ports.
func isPortInUse(err error) bool {
	var exit *process.ExitError
	return errors.As(err, &exit) && strings.Contains(exit.LogTail, "address already in use")
}

// startOnce makes one attempt to start a cluster, with new ports, new keys and a new state
// directory. If the attempt fails, startOnce stops all processes.
func startOnce(ctx context.Context, opts Options, binaries Binaries) (*Cluster, error) {
	c, err := prepare(ctx, opts, binaries)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the control plane was not ready within %s", startTimeout))
	defer cancel()
	if err := c.startComponents(ctx, opts); err != nil {
		if exitErr := c.Err(); exitErr != nil {
			err = exitErr // a component has exited, which has caused err
		}
		// Stop must not depend on ctx, which may be canceled.
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// prepare chooses free ports and creates the state directory with the files that the components
// read. The returned Cluster has not started a component yet.
func prepare(ctx context.Context, opts Options, binaries Binaries) (*Cluster, error) {
	creds, err := newCredentials(time.Now())
	if err != nil {
		return nil, err
	}
	ports, err := freePorts()
	if err != nil {
		return nil, err
	}
	l := layout{dir: filepath.Join(opts.Dir, "cluster"), logDir: opts.LogDir, ports: ports}
	// Mkdir fails if the directory exists. Stop therefore never removes a directory that prepare
	// has not created.
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the state directory of the embedded cluster: %w", err)
	}
	unguard, err := process.GuardDirectory(l.dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	c := newCluster(l, binaries, creds, unguard)
	if err := errors.Join(l.write(opts, creds), createAuditDirectory(opts.AuditLog)); err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// startComponents starts all components and waits until the cluster is ready.
//
// A cluster is ready if it meets the conditions in the comment of [Start]. The clients of the API
// server start as soon as the API server can serve them. If a component exits, startComponents
// returns an error at once.
func (c *Cluster) startComponents(ctx context.Context, opts Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.failed:
			cancel(c.Err())
		case <-ctx.Done():
		}
	}()
	// kube-apiserver exits if etcd refuses its connections. Nevertheless, both can start at the
	// same time, because etcd starts faster and accepts connections in time.
	for _, component := range []component{etcdComponent(c.layout, c.binaries), apiServerComponent(c.layout, c.binaries, opts)} {
		if err := c.launch(ctx, component); err != nil {
			return err
		}
	}
	for _, client := range []struct {
		endpoint  string // path for which the API server must return status 200 before the component starts
		component component
		before    func(context.Context) error // called before the component starts; may be nil
	}{
		// kube-scheduler and KWOK retry until the API server is ready.
		{"/livez/ping", schedulerComponent(c.layout, c.binaries, opts.Verbosity), nil},
		{"/livez/ping", kwokComponent(c.layout, c.binaries), nil},
		// kube-controller-manager exits if the API server is not healthy within 10 s,
		// which can happen on a busy machine.
		{"/healthz", controllerManagerComponent(c.layout, c.binaries, opts), func(ctx context.Context) error { return c.createDefinitions(ctx, opts.Definitions) }},
	} {
		if err := c.await(ctx, "kube-apiserver", localURL(c.layout.ports.apiServer, client.endpoint)); err != nil {
			return err
		}
		if client.before != nil {
			if err := client.before(ctx); err != nil {
				return err
			}
		}
		if err := c.launch(ctx, client.component); err != nil {
			return err
		}
	}
	if err := c.awaitReady(ctx, opts.Nodes); err != nil || !opts.Volumes {
		return err
	}
	for _, start := range []func(context.Context, Options) (func(), error){c.startProvisioner, c.startKubeletRetries} {
		stop, err := start(ctx, opts)
		if err != nil {
			return err
		}
		c.stopReconcilers = append(c.stopReconcilers, stop)
	}
	return nil
}

// awaitReady creates the nodes and the pod policies (see [protectPodLifecycle]), and waits until
// pods can run. Pods can run if all components are healthy, all nodes are schedulable, and
// ServiceAccount default/default exists.
func (c *Cluster) awaitReady(ctx context.Context, nodes int) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return fmt.Errorf("creating a client for the API server: %w", err)
	}
	ready, ctx := errgroup.WithContext(ctx)
	for _, p := range c.parts {
		if p.healthURL != "" {
			ready.Go(func() error { return c.await(ctx, p.name, p.healthURL) })
		}
	}
	ready.Go(func() error {
		if err := c.awaitDefaultServiceAccount(ctx, client); err != nil {
			return err
		}
		return protectPodLifecycle(ctx, client)
	})
	ready.Go(func() error { return c.createNodes(ctx, client, nodes) })
	return ready.Wait()
}

// pollInterval is the time between two checks of a condition for which this package waits.
const pollInterval = 25 * time.Millisecond

// poll calls the function condition until it returns nil or ctx ends. It is [cluster.Poll] with the
// interval pollInterval. If ctx ends, the error contains the description, which says what the
// caller waits for.
func poll(ctx context.Context, description string, condition func(context.Context) error) error {
	return cluster.Poll(ctx, pollInterval, description, condition)
}

// await waits until the named component is healthy. It sends requests to the component's URL until
// a response has status 200. If ctx is canceled first, the error contains the end of the
// component's log.
func (c *Cluster) await(ctx context.Context, name, url string) error {
	return poll(ctx, name, func(ctx context.Context) error {
		err := c.prober.probe(ctx, url)
		if err != nil {
			err = fmt.Errorf("%w; last lines of the %s log:\n%s", err, name, c.logTail(name))
		}
		return err
	})
}
