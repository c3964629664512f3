// Package proxy is the fault proxy: the subject's only way to the API server.
// It records every request of the subject and everything the subject is told,
// and it lets faults spoil both. An unmodified binary is put under test by
// giving it a kubeconfig that names the proxy.
//
// With no fault, it is transparent: the bytes of answers and watch events are
// forwarded as they came, a reset is passed on as a reset, a dead API server
// looks dead. The subject's credentials pass through it and are never recorded.
// Two things differ from a direct connection: answers are never compressed, and
// connections cannot be upgraded (exec, port-forward).
//
// It keeps the order that package history promises: a request is recorded
// before it is sent on, an answer or an event before it is handed over. What it
// cannot read it forwards all the same, and records a gap.
//
// It decides nothing by itself: what goes wrong, when and why is up to the
// faults in the packages beside it.
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Recorder takes the records; a [history.Recorder] is one.
type Recorder interface {
	Append(history.Record)
}

// Options says between whom the proxy stands.
type Options struct {
	// Target is the API server: https, host and port, no path.
	Target *url.URL
	// TargetCA is the CA of the API server's certificate, in PEM.
	TargetCA []byte
	Recorder Recorder
	Clock    clock.WithTicker
	// Dial connects to the API server; nil is a plain dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Proxy stands between subject instances and one API server.
type Proxy struct {
	ctx         context.Context // the life of everything in it
	cancel      context.CancelFunc
	target      *url.URL
	targetCA    *x509.CertPool
	recorder    Recorder
	clock       clock.WithTicker
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	certificate tls.Certificate
	ca          []byte

	requestFaults *hooks[RequestFault]
	watchFaults   *hooks[WatchFault]
	lastID        atomic.Uint64
	openStreams   openStreams
	owners        *ownerIndex
	skew          skewedClock

	mu        sync.RWMutex
	instances map[string]*instanceServer
	stopped   bool
	handlers  sync.WaitGroup // requests under way
	servers   sync.WaitGroup
	failures  []error // of servers that ended by themselves
}

// Endpoint is where a subject instance finds the API server.
type Endpoint struct {
	URL string
	CA  []byte // in PEM
}

// Start makes a proxy without listeners. Cancelling ctx breaks whatever is
// under way; Stop ends the proxy.
func Start(ctx context.Context, options Options) (*Proxy, error) {
	target := options.Target
	if target.Scheme != "https" || target.Host == "" || (target.Path != "" && target.Path != "/") {
		return nil, fmt.Errorf("fault proxy: target %q: expected https://host:port", target)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(options.TargetCA) {
		return nil, errors.New("fault proxy: the API server's CA: expected certificates in PEM")
	}
	certificate, ca, err := newServingCertificate(options.Clock.Now())
	if err != nil {
		return nil, err
	}
	dial := options.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second}).DialContext
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Proxy{
		ctx:           ctx,
		cancel:        cancel,
		target:        target,
		targetCA:      pool,
		recorder:      options.Recorder,
		clock:         options.Clock,
		dial:          dial,
		certificate:   certificate,
		ca:            ca,
		requestFaults: newHooks[RequestFault](),
		watchFaults:   newHooks[WatchFault](),
		openStreams:   openStreams{all: map[*stream]bool{}},
		owners:        newOwnerIndex(),
		instances:     map[string]*instanceServer{},
	}, nil
}

// Listen opens the way of one subject instance, such as "subject-0": the name
// under which its requests are recorded. Its endpoint stays when the instance is
// restarted.
func (p *Proxy) Listen(subject string) (Endpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return Endpoint{}, fmt.Errorf("fault proxy of %s: the proxy has stopped", subject)
	case p.instances[subject] != nil:
		return Endpoint{}, fmt.Errorf("fault proxy of %s: it listens already", subject)
	}
	listener, err := (&net.ListenConfig{}).Listen(p.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Endpoint{}, fmt.Errorf("fault proxy of %s: %w", subject, err)
	}
	g := p.newInstanceServer(subject)
	p.instances[subject] = g
	p.servers.Go(func() {
		if err := g.serve(listener); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failures = append(p.failures, err)
		}
	})
	return Endpoint{URL: "https://" + listener.Addr().String(), CA: p.ca}, nil
}

// Route opens the way of one subject instance, as Listen does, and has a
// configuration that leads straight to the API server take it.
func (p *Proxy) Route(subject string, config *rest.Config) error {
	endpoint, err := p.Listen(subject)
	if err != nil {
		return err
	}
	config.Host, config.CAData = endpoint.URL, endpoint.CA
	return nil
}

// OnRequest lets a fault see every request from now on. When remove has
// returned, the fault is not called any more.
func (p *Proxy) OnRequest(fault RequestFault) (remove func()) {
	return p.requestFaults.add(fault)
}

// OnWatchEvent lets a fault see every watch event from now on. When remove has
// returned, the fault is not called any more, and what it holds is being handed
// over, in order.
func (p *Proxy) OnWatchEvent(fault WatchFault) (remove func()) {
	return p.watchFaults.add(fault)
}

// Stop closes the listeners, breaks all connections and waits, as long as ctx
// allows, until nothing of the proxy runs any more. It may be called again. Its
// error says what still runs, or which listener had ended by itself.
func (p *Proxy) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopped = true
	gates := p.instances
	p.mu.Unlock()

	p.cancel()
	var errs []error
	for _, g := range gates {
		errs = append(errs, g.close())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.servers.Wait()
		p.handlers.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("fault proxy: requests are still under way: %w", ctx.Err())
	}
	for _, g := range gates {
		g.transports.closeIdle() // those that the last requests gave back
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(append(errs, p.failures...)...)
}

// enter counts a request in, unless the proxy is stopping.
func (p *Proxy) enter() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.stopped {
		return false
	}
	p.handlers.Add(1)
	return true
}

func (p *Proxy) stopping() bool { return p.ctx.Err() != nil }
