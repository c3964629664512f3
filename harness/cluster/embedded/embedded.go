// Package embedded is a control plane of real, unmodified programs on loopback:
// etcd, kube-apiserver, kube-controller-manager without the four controllers
// under test, kube-scheduler, and KWOK in the place of the kubelets. It needs no
// container engine, only the binaries that harness/upstream builds.
//
// Every cluster has ports, keys, tokens and a state directory of its own, and
// throws them away when it stops. It is not a cluster to keep: etcd does not
// sync to disk, and a part that dies is not started again.
//
// To read it: start.go is the procedure, components.go the programs and their
// flags, stages.yaml what a simulated kubelet does.
package embedded

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

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

	mu       sync.Mutex
	parts    []*part // in the order of their start
	stopping bool
	err      error // why failed is closed
}

var _ cluster.Cluster = (*Cluster)(nil)

// part is a running component.
type part struct {
	component
	*process.Process
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

// Failed is closed when a component ends that was not asked to.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err is nil until Failed is closed, then which component ended and why.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Health asks every component that answers, and sees that the others run.
func (c *Cluster) Health(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	parts, stopping := c.parts, c.stopping
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

// launch starts a component and has its death noticed.
func (c *Cluster) launch(ctx context.Context, component component) error {
	p, err := process.Start(ctx, c.layout.spec(component))
	if err != nil {
		return err
	}
	part := &part{component, p}
	c.mu.Lock()
	c.parts = append(c.parts, part)
	c.mu.Unlock()
	go func() {
		<-p.Done()
		c.fail(p.Err())
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
		parts := c.parts
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
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(creds.authorityPEM)
	return &Cluster{
		layout: layout, binaries: binaries, creds: creds, release: release, failed: make(chan struct{}),
		probes: newProber(roots, creds.tokens[cluster.Admin]),
	}
}
