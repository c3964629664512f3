// Package embedded runs a control plane of unmodified upstream programs on the loopback interface.
//
// The programs are etcd, kube-apiserver, kube-scheduler, kube-controller-manager
// without the controllers under test, and KWOK, which simulates the kubelets.
// The package needs no container engine, only the binaries that harness/upstream
// builds.
//
// Every cluster has its own ports, keys, tokens and state directory, and removes them
// when it stops. It is not suited for permanent use: etcd does not sync its data to
// disk, and a component that crashes is not restarted.
//
// start.go contains the start procedure, components.go the programs with their flags,
// stages.yaml the behavior of the simulated kubelets, and halt.go the crash and
// restart of components.
package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// Cluster is a running embedded control plane. See [Start].
type Cluster struct {
	layout   layout
	binaries Binaries
	creds    *credentials
	prober   prober
	unguard  func() // stops the guard process from removing the state directory

	failed   chan struct{}
	stopOnce sync.Once
	stopErr  error

	recovering sync.Mutex // held while clients of the API server are restarted

	mu       sync.Mutex
	parts    []*part // in the order of their first start
	degraded bool    // from Halt until all components run again
	halts    int     // number of calls of Halt
	stopping bool
	err      error // reason for closing failed
}

var _ cluster.Cluster = (*Cluster)(nil)

// Name is the name of this provider.
const Name = "embedded"

// Capabilities are the capabilities of this provider.
var Capabilities = cluster.Capabilities{
	cluster.OwnsControlPlane, cluster.RestartsControlPlane, cluster.AccessesEtcd, cluster.StandingClusters, cluster.ParallelRuns,
	cluster.SimulatedKubelets, cluster.ControlsContainers, cluster.ControlsKubelets,
	cluster.SubjectAsProcess, cluster.PausesSubject, cluster.SkewsClocks,
}

// part is a component with its latest process.
type part struct {
	component
	*process.Process
	// down means that the process has exited as expected, so that Health waits for its
	// restart. Either it was halted, or it exited because another component was halted.
	down bool
}

// Name returns [Name].
func (c *Cluster) Name() string { return Name }

// Capabilities returns [Capabilities].
func (c *Cluster) Capabilities() cluster.Capabilities { return Capabilities }

// Binaries returns the paths of the programs of this cluster.
// Its kube-controller-manager is also the upstream subject.
func (c *Cluster) Binaries() Binaries { return c.binaries }

// Config returns a client configuration for a role. Requests go directly to the API server.
func (c *Cluster) Config(role cluster.Role) *rest.Config {
	return &rest.Config{
		Host:            c.layout.apiServerURL(),
		BearerToken:     c.creds.tokens[role],
		TLSClientConfig: rest.TLSClientConfig{CAData: append([]byte(nil), c.creds.authorityPEM...)},
		// The harness uses deprecated APIs such as Endpoints on purpose.
		WarningHandler: rest.NoWarnings{},
		UserAgent:      "gauntlet-" + string(role),
		QPS:            -1, // no client-side rate limit, because it would change the timing of a run
	}
}

// Etcd returns a client of the cluster's etcd. It uses the client certificate of the API server.
func (c *Cluster) Etcd(context.Context) (*clientv3.Client, error) {
	pair, err := tls.X509KeyPair(c.creds.etcdClient.Certificate, c.creds.etcdClient.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate for etcd: %w", err)
	}
	return cluster.DialEtcd(localURL(c.layout.ports.etcd, ""), &tls.Config{
		RootCAs: c.creds.roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	})
}

// Failed returns a channel that is closed when a component exits unexpectedly.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err returns nil until Failed is closed. Afterwards its error says which component exited
// and why.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Health returns nil if all components run and their health endpoints return status 200.
// If a component is halted or restarting, Health waits until all components run again.
func (c *Cluster) Health(ctx context.Context) error {
	if halts := c.haltCount(); !c.isDegraded() {
		if err := c.checkHealth(ctx); err == nil || c.haltCount() == halts {
			return err
		} // otherwise a component was halted during the check
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("timed out after %s", recoveryTimeout))
	defer cancel()
	return poll(ctx, "all components of the control plane to run again", func(ctx context.Context) error {
		if c.isDegraded() {
			return errors.New("a component is halted or restarting")
		}
		return c.checkHealth(ctx)
	})
}

// checkHealth checks all components once.
func (c *Cluster) checkHealth(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	parts, stopping := slices.Clone(c.parts), c.stopping
	c.mu.Unlock()
	if stopping {
		return errors.New("the cluster has been stopped")
	}
	for _, part := range parts {
		if part.healthURL == "" {
			continue
		}
		if err := c.prober.probe(ctx, part.healthURL); err != nil {
			return unhealthy(part, err)
		}
	}
	return nil
}

// unhealthy returns the error for a running component whose health check failed.
func unhealthy(p *part, err error) error {
	return fmt.Errorf("%s is not healthy: %w; last lines of its log:\n%s", p.name, err, p.LogTail())
}

// launch starts a component and watches its process for an unexpected exit. The new
// part replaces an earlier part with the same name.
func (c *Cluster) launch(ctx context.Context, component component) error {
	p, err := process.Start(ctx, c.layout.spec(component))
	if err != nil {
		return err
	}
	started := &part{component: component, Process: p}
	c.mu.Lock()
	if i := slices.IndexFunc(c.parts, func(p *part) bool { return p.name == component.name }); i >= 0 {
		c.parts[i] = started
	} else {
		c.parts = append(c.parts, started)
	}
	c.mu.Unlock()
	go func() {
		<-p.Done()
		c.handleExit(started)
	}()
	return nil
}

// fail stores the first unexpected exit and closes the channel failed.
func (c *Cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.err != nil {
		return
	}
	c.err = err
	close(c.failed)
}

// Stop stops all components and removes the state directory, but not the logs.
// It stops the clients of the API server first and etcd last, because kube-apiserver
// does not complete a graceful shutdown without etcd.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		c.mu.Lock()
		c.stopping = true
		parts := slices.Clone(c.parts)
		c.mu.Unlock()
		var errs []error
		for _, group := range stopOrder {
			errs = append(errs, stopAll(ctx, parts, group))
		}
		errs = append(errs, os.RemoveAll(c.layout.dir))
		if c.stopErr = errors.Join(errs...); c.stopErr == nil {
			c.unguard()
		}
	})
	return c.stopErr
}

// stopAll stops the parts of one stop group concurrently.
func stopAll(ctx context.Context, parts []*part, group int) error {
	var stops errgroup.Group
	for _, p := range parts {
		if p.stopGroup == group {
			stops.Go(func() error { return p.Stop(ctx, p.stopGrace) })
		}
	}
	return stops.Wait()
}

func newCluster(layout layout, binaries Binaries, creds *credentials, unguard func()) *Cluster {
	return &Cluster{
		layout: layout, binaries: binaries, creds: creds, unguard: unguard, failed: make(chan struct{}),
		prober: newProber(creds.roots, creds.tokens[cluster.Admin]),
	}
}
