// Package embedded is a control plane of real, unmodified programs on loopback:
// etcd, kube-apiserver, kube-controller-manager without the four controllers
// under test, kube-scheduler, and KWOK in the place of the kubelets. It needs no
// container engine, only the binaries that harness/upstream builds.
//
// Every cluster has ports, keys, tokens and a state directory of its own, and
// throws them away when it stops. It is not a cluster to keep: etcd does not
// sync to disk, and a part that dies by itself is not started again.
//
// To read it: start.go is the procedure, components.go the programs and their
// flags, stages.yaml what a simulated kubelet does, halt.go how parts are out of
// order for a time.
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
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// Cluster is a running embedded control plane. See [Start].
type Cluster struct {
	layout   layout
	binaries Binaries
	creds    *credentials
	probes   prober
	release  func() // of the guard's hold on the state directory

	failed   chan struct{}
	stopOnce sync.Once
	stopErr  error

	mending sync.Mutex // held while what ended for want of the API server is started

	mu       sync.Mutex
	parts    []*part // in the order of their start
	broken   bool    // from the halt of a part until everything is at work again
	halts    int     // how often a part was halted
	stopping bool
	err      error // why failed is closed
}

var _ cluster.Cluster = (*Cluster)(nil)

// part is a component and its process, the last one if it was started again.
type part struct {
	component
	*process.Process
	// down says that the process is meant to have ended: it was halted, or ended
	// for want of a part that was.
	down bool
}

// Name is "embedded".
func (c *Cluster) Name() string { return "embedded" }

// Binaries is where the programs of this cluster are: kube-controller-manager
// is also the upstream subject.
func (c *Cluster) Binaries() Binaries { return c.binaries }

// Config returns a client configuration for a role, straight to the API server.
func (c *Cluster) Config(role cluster.Role) *rest.Config {
	return &rest.Config{
		Host:            c.layout.apiServerURL(),
		BearerToken:     c.creds.tokens[role],
		TLSClientConfig: rest.TLSClientConfig{CAData: append([]byte(nil), c.creds.authorityPEM...)},
		// What is deprecated is tested all the same; nobody needs to be told.
		WarningHandler: rest.NoWarnings{},
		UserAgent:      "gauntlet-" + string(role),
		QPS:            -1, // no limit: the run's own pace must not depend on the client
	}
}

// Etcd returns a client of the cluster's etcd, who it is to etcd as the API
// server is.
func (c *Cluster) Etcd(context.Context) (*clientv3.Client, error) {
	pair, err := tls.X509KeyPair(c.creds.etcdClient.Certificate, c.creds.etcdClient.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of etcd's client: %w", err)
	}
	return cluster.DialEtcd(localURL(c.layout.ports.etcd, ""), &tls.Config{
		RootCAs: c.creds.roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	})
}

// Failed is closed when a component ends that was not asked to.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err is nil until Failed is closed, then which component ended and why.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Health asks every component that answers, and sees that the others run. While
// one is halted, and until all are back, it waits.
func (c *Cluster) Health(ctx context.Context) error {
	if halts := c.haltsSoFar(); c.whole() {
		if err := c.look(ctx); err == nil || c.haltsSoFar() == halts {
			return err
		} // one was halted while it was asked
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mendWithin, fmt.Errorf("not whole within %s", mendWithin))
	defer cancel()
	return poll(ctx, "the control plane to be whole again", func(ctx context.Context) error {
		if !c.whole() {
			return errors.New("a part is out of order")
		}
		return c.look(ctx)
	})
}

// look asks once.
func (c *Cluster) look(ctx context.Context) error {
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
		if err := c.probes.probe(ctx, part.healthURL); err != nil {
			return unhealthy(part, err)
		}
	}
	return nil
}

// unhealthy is the error for a part that runs but does not answer as it should.
func unhealthy(p *part, err error) error {
	return fmt.Errorf("%s is not healthy: %w; the end of its log:\n%s", p.name, err, p.LogTail())
}

// launch starts a component and has its death noticed. A part of that name that
// was there before it takes the place of.
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
		c.ended(started)
	}()
	return nil
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

// Stop ends the components, those that talk to the API server first and etcd
// last, because kube-apiserver does not finish a graceful stop once its etcd is
// gone. It then removes the state directory; the logs stay.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		c.mu.Lock()
		c.stopping = true
		parts := slices.Clone(c.parts)
		c.mu.Unlock()
		var errs []error
		for _, wave := range stopWaves {
			errs = append(errs, stopAll(ctx, parts, wave))
		}
		errs = append(errs, os.RemoveAll(c.layout.dir))
		if c.stopErr = errors.Join(errs...); c.stopErr == nil {
			c.release()
		}
	})
	return c.stopErr
}

// stopAll stops the parts of one wave at the same time.
func stopAll(ctx context.Context, parts []*part, wave int) error {
	var stops errgroup.Group
	for _, p := range parts {
		if p.stopWave == wave {
			stops.Go(func() error { return p.Stop(ctx, p.stopGrace) })
		}
	}
	return stops.Wait()
}

func newCluster(layout layout, binaries Binaries, creds *credentials, release func()) *Cluster {
	return &Cluster{
		layout: layout, binaries: binaries, creds: creds, release: release, failed: make(chan struct{}),
		probes: newProber(creds.roots, creds.tokens[cluster.Admin]),
	}
}
