// Package embedded runs a control plane of unmodified upstream programs on the loopback interface.
//
// The programs are etcd, kube-apiserver, kube-scheduler, kube-controller-manager and KWOK.
// kube-controller-manager does not run the controllers under test. KWOK simulates the kubelets. The
// package needs no container engine, only the binaries that `gauntlet setup` builds.
//
// Every cluster has its own ports, keys, tokens and state directory. [Cluster.Stop] removes the
// state directory. Do not keep data in an embedded cluster: etcd does not sync its data to disk,
// and the package does not restart a component that crashes.
//
// start.go contains the start procedure, and components.go the command lines of the programs.
// stages.yaml defines the behavior of the simulated kubelets. lifecycle.go makes the API server
// refuse pod writes that no real kubelet would send. halt.go contains the functions with which
// faults kill and restart components.
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

// Cluster is a running embedded control plane. [Start] returns it.
type Cluster struct {
	layout   layout
	binaries Binaries
	creds    *credentials
	prober   prober
	unguard  func() // tells the guard process that it need no longer remove the state directory if gauntlet dies

	// stopReconcilers stop the provisioner of simulated volumes and the retries of simulated kubelets.
	// The list is empty if the cluster has no volumes.
	stopReconcilers []func()

	failed   chan struct{} // closed when a component exits unexpectedly
	stopOnce sync.Once
	stopErr  error // the error that the first call of Stop returned

	recovering sync.Mutex // held while recoverClients restarts clients of the API server

	mu       sync.Mutex // guards the fields of Cluster below this one
	parts    []*part    // one part for each component that was started, in the order of the first start
	degraded bool       // true from Halt until all components run again
	halts    int        // how often Halt was called
	stopping bool       // true as soon as Stop was called
	err      error      // why a component exited unexpectedly; nil while the channel failed is open
}

var _ cluster.Cluster = (*Cluster)(nil)

// Name is the name of this provider, as in the flag --provider=embedded.
const Name = "embedded"

// Capabilities lists what every embedded cluster supports, such as simulated kubelets and
// restarts of the control plane.
var Capabilities = cluster.Capabilities{
	cluster.OwnsControlPlane, cluster.ControlsAdmission, cluster.RestartsControlPlane, cluster.AccessesEtcd, cluster.StandingClusters, cluster.ParallelRuns,
	cluster.SimulatedKubelets, cluster.ControlsContainers, cluster.ControlsKubelets,
	cluster.SubjectAsProcess, cluster.PausesSubject, cluster.SkewsClocks,
}

// part is one process of a control plane component, such as etcd. A restart of the component
// creates a new part.
type part struct {
	component
	*process.Process
	// down means that a fault is the reason why the process does not run. Halt has killed the
	// process, or the process exited because Halt had killed etcd or the API server. While a part
	// is down, Health waits until the component runs again.
	down bool
}

// Name returns "embedded", the name of the provider.
func (c *Cluster) Name() string { return Name }

// Capabilities returns the variable [Capabilities].
func (c *Cluster) Capabilities() cluster.Capabilities { return Capabilities }

// Binaries returns the paths of the programs that this cluster runs. With --subject=upstream, the
// controllers under test run the same kube-controller-manager binary as the cluster.
func (c *Cluster) Binaries() Binaries { return c.binaries }

// Config returns a client configuration for a role. A role is a user of the cluster with its own
// token, such as cluster.Subject for the controllers under test. Clients with this configuration
// connect directly to the API server, not through the fault proxy.
func (c *Cluster) Config(role cluster.Role) *rest.Config {
	return &rest.Config{
		Host:            c.layout.apiServerURL(),
		BearerToken:     c.creds.tokens[role],
		TLSClientConfig: rest.TLSClientConfig{CAData: append([]byte(nil), c.creds.authorityPEM...)},
		// The harness uses deprecated APIs such as Endpoints on purpose.
		WarningHandler: rest.NoWarnings{},
		UserAgent:      "gauntlet-" + string(role),
		QPS:            -1, // no client-side rate limit, which would change the timing of a run
	}
}

// Etcd returns a client of the cluster's etcd. The client authenticates with the same client
// certificate as the API server.
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

// Err returns nil until the channel that Failed returns is closed. Then the error names the
// component that exited, and contains the end of that component's log.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Health returns nil if all components run and their health endpoints return status 200.
//
// If a fault has stopped a component or is restarting it, Health first waits until all components
// run again. The wait takes at most one minute ([recoveryTimeout]).
func (c *Cluster) Health(ctx context.Context) error {
	if halts := c.haltCount(); !c.isDegraded() {
		if err := c.checkHealth(ctx); err == nil || c.haltCount() == halts {
			return err
		} // Halt was called during the health check, and may have caused the error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("the control plane did not recover within %s", recoveryTimeout))
	defer cancel()
	return poll(ctx, "all components of the control plane to run again", func(ctx context.Context) error {
		if c.isDegraded() {
			return errors.New("kube-apiserver or etcd is halted, or a component of the control plane is restarting")
		}
		return c.checkHealth(ctx)
	})
}

// checkHealth sends one request to the health endpoint of each component, without retries. The
// error names the first unhealthy component.
func (c *Cluster) checkHealth(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	parts, stopping := slices.Clone(c.parts), c.stopping
	c.mu.Unlock()
	if stopping {
		return errors.New("checking the health of the embedded cluster: the cluster has been stopped")
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

// unhealthy returns an error with the component's name and the end of its log. The argument err
// says why the component's health check failed.
func unhealthy(p *part, err error) error {
	return fmt.Errorf("%s is not healthy: %w; last lines of the %[1]s log:\n%[3]s", p.name, err, p.LogTail())
}

// launch starts a process of a component, and calls handleExit when the process exits. If the
// component was started earlier, launch replaces the component's part in c.parts.
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

// fail marks the cluster as failed, because a component has exited unexpectedly. It sets c.err
// to err and closes the channel c.failed. After Stop or an earlier call, fail does nothing.
func (c *Cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.err != nil {
		return
	}
	c.err = err
	close(c.failed)
}

// Stop stops all components and removes the state directory, but not the logs. It stops the clients
// of the API server first. It stops etcd last, because kube-apiserver cannot shut down gracefully
// without etcd. Only the first call stops the cluster; later calls return the same error.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		c.mu.Lock()
		c.stopping = true
		parts := slices.Clone(c.parts)
		c.mu.Unlock()
		for _, stop := range c.stopReconcilers {
			stop()
		}
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

// stopAll stops all processes of one group, such as stopClients, at the same time. It waits until
// they have exited.
func stopAll(ctx context.Context, parts []*part, group int) error {
	var stops errgroup.Group
	for _, p := range parts {
		if p.stopGroup == group {
			stops.Go(func() error { return p.Stop(ctx, p.stopGrace) })
		}
	}
	return stops.Wait()
}

// newCluster returns a Cluster with the given files and credentials. No component has been started
// yet. The argument unguard is a function that tells the guard process to no longer clean up after
// this cluster.
func newCluster(layout layout, binaries Binaries, creds *credentials, unguard func()) *Cluster {
	return &Cluster{
		layout: layout, binaries: binaries, creds: creds, unguard: unguard, failed: make(chan struct{}),
		prober: newProber(creds.roots, creds.tokens[cluster.Admin]),
	}
}
