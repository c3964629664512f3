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
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

const (
	// startDurationMax bounds a start. It takes 4 s on two idle cores; the rest
	// is for machines that are slow or busy.
	startDurationMax = 2 * time.Minute
	// attemptsMax bounds the starts that a taken port makes begin anew.
	attemptsMax = 5
)

// Start starts a control plane and returns when it is ready: the API server
// answers ready, kube-controller-manager has made the default service accounts,
// the scheduler is healthy and every node is Ready. On an error nothing is left
// running. Cancelling ctx afterwards does nothing to the cluster: Stop it.
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
	if err := checkRoom(opts.Dir, roomBytesMin); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, opts, binaries)
		if err == nil {
			return c, nil
		}
		if !portTaken(err) || attempt == attemptsMax {
			return nil, fmt.Errorf("embedded cluster: %w", err)
		}
	}
}

// portTaken reports whether a component died because another process had taken
// its port since it was found free.
func portTaken(err error) bool {
	var exit *process.ExitError
	return errors.As(err, &exit) && strings.Contains(exit.LogTail, "address already in use")
}

// startOnce is one attempt, with ports, keys and a state directory of its own.
func startOnce(ctx context.Context, opts Options, binaries Binaries) (*Cluster, error) {
	c, err := prepare(ctx, opts, binaries)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startDurationMax, fmt.Errorf("not ready within %s", startDurationMax))
	defer cancel()
	if err := c.bringUp(ctx, opts); err != nil {
		if died := c.Err(); died != nil {
			err = died // whatever else went wrong, went wrong because of it
		}
		// The caller's context may be what ended the start.
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// prepare makes everything that the components read.
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
	// Made here and nowhere else, so that it is safe to remove.
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	release, err := process.GuardDirectory(l.dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	c := newCluster(l, binaries, creds, release)
	if err := l.write(opts, creds); err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// bringUp starts the components, each as soon as what it needs is there, and
// waits until the cluster is ready. The death of any of them ends it at once.
func (c *Cluster) bringUp(ctx context.Context, opts Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.failed:
			cancel(c.Err())
		case <-ctx.Done():
		}
	}()
	// kube-apiserver waits for its etcd by itself, but gives up on one that
	// refuses connections; by the time it asks, etcd is there.
	for _, component := range []component{etcdComponent(c.layout, c.binaries), apiServerComponent(c.layout, c.binaries, opts.Verbosity)} {
		if err := c.launch(ctx, component); err != nil {
			return err
		}
	}
	for _, client := range []struct {
		answered  string // of the API server, before it can start
		component component
	}{
		// Its clients can start up while the API server finishes.
		{"/livez/ping", schedulerComponent(c.layout, c.binaries, opts.Verbosity)},
		{"/livez/ping", kwokComponent(c.layout, c.binaries)},
		// Unless they give up on one that takes more than 10 s to finish, as it may
		// on a busy machine.
		{"/healthz", controllerManagerComponent(c.layout, c.binaries, opts.Verbosity)},
	} {
		if err := c.await(ctx, "kube-apiserver", localURL(c.layout.ports.apiServer, client.answered)); err != nil {
			return err
		}
		if err := c.launch(ctx, client.component); err != nil {
			return err
		}
	}
	return c.awaitReady(ctx, opts.Nodes)
}

// awaitReady waits for everything that makes the cluster ready.
func (c *Cluster) awaitReady(ctx context.Context, nodes int) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	ready, ctx := errgroup.WithContext(ctx)
	for _, p := range c.parts {
		if p.healthURL != "" {
			ready.Go(func() error { return c.await(ctx, p.name, p.healthURL) })
		}
	}
	ready.Go(func() error { return c.awaitDefaultAccounts(ctx, client) })
	ready.Go(func() error { return c.awaitNodes(ctx, client, nodes) })
	return ready.Wait()
}

// pollInterval is the time between two looks at something that is not ready yet.
const pollInterval = 25 * time.Millisecond

func poll(ctx context.Context, what string, look func(context.Context) error) error {
	return cluster.Poll(ctx, pollInterval, what, look)
}

// await waits until a part answers 200 at a URL.
func (c *Cluster) await(ctx context.Context, name, url string) error {
	return poll(ctx, name, func(ctx context.Context) error {
		err := c.probes.probe(ctx, url)
		if err != nil {
			err = fmt.Errorf("%w; the end of its log:\n%s", err, c.logTail(name))
		}
		return err
	})
}
