// Package proxy is the fault proxy, the subject's only connection to the API server. It
// records every request of the subject and everything that the subject receives, and it
// applies the effects of faults to both. To test an unmodified binary, give it a kubeconfig
// that points to the proxy.
//
// Without a fault the proxy is transparent. It forwards responses and watch events byte for
// byte, forwards a stream reset as a stream reset, and breaks the subject's connection if
// the API server is down. It forwards the subject's credentials and never records them. Two
// things differ from a direct connection: responses are not compressed, and a connection
// cannot be upgraded (exec, port-forward).
//
// The proxy records a request before it forwards the request, and a response or event before
// it delivers it. It forwards what it cannot decode and records a gap.
//
// # Files
//
// The proxy decides nothing by itself. Every request and every watch event passes three
// steps:
//
//  1. Match. A fault in another package registers a [RequestFault] or [WatchFault] with
//     [Proxy.OnRequest] or [Proxy.OnWatchEvent]. The proxy calls it and gets an effect or
//     nil (hooks.go; exchange.matchFault for requests, stream.inspect for events).
//     request_target.go parses verb, resource and name from the URL; owner_index.go finds
//     the owner of an object.
//  2. Effect. [RequestEffect] and [WatchEffect] describe the effects; their fields are in the
//     order in which they apply. exchange.serve is the sequence for a request; inject.go and
//     refuse.go implement its effects. stream.deliverEvents and queue.go implement the holds.
//     [Proxy.EndWatches] (watch_end.go) and [Proxy.SkewClock] (skew.go) act without a match.
//  3. Record. exchange.go appends requests and responses to the history, watch.go deliveries
//     and the ends of watches. decode.go converts bodies to history objects. The fault itself
//     records its firing with faults.Reporter.
//
// The remaining files transfer bytes. instance_server.go listens for one replica of the
// subject, and subject_conn.go resets its connections. transport_pool.go holds connections
// to the API server, and frames.go splits watch streams into events.
//
// To add an effect: add a field to [RequestEffect] or [WatchEffect], apply it at its place
// in exchange.serve or stream.inspect, and record it in the response or delivery.
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

// Recorder stores records; [history.Recorder] implements it.
type Recorder interface {
	Append(history.Record)
}

// Options configure a [Proxy].
type Options struct {
	// Target is the URL of the API server: https, host and port, no path.
	Target *url.URL
	// TargetCA is the CA of the API server's certificate, in PEM.
	TargetCA []byte
	Recorder Recorder
	Clock    clock.WithTicker
	// Dial connects to the API server; nil uses a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Proxy forwards requests of the subject's replicas to one API server.
type Proxy struct {
	ctx         context.Context // ends everything that the proxy runs
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
	handlers  sync.WaitGroup // requests in flight
	servers   sync.WaitGroup
	failures  []error // errors of listeners that failed
}

// Endpoint is the address of the proxy for one replica of the subject.
type Endpoint struct {
	URL string
	CA  []byte // in PEM
}

// Start returns a proxy without listeners. Canceling ctx breaks all requests in flight; Stop
// ends the proxy.
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

// Listen opens a listener for one replica of the subject, such as "subject-0". The
// history records the requests on this listener under the replica's name. A restarted
// replica uses the same endpoint.
func (p *Proxy) Listen(subject string) (Endpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return Endpoint{}, fmt.Errorf("fault proxy of %s: the proxy has stopped", subject)
	case p.instances[subject] != nil:
		return Endpoint{}, fmt.Errorf("fault proxy of %s: a listener of this name exists already", subject)
	}
	listener, err := (&net.ListenConfig{}).Listen(p.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Endpoint{}, fmt.Errorf("fault proxy of %s: %w", subject, err)
	}
	server := p.newInstanceServer(subject)
	p.instances[subject] = server
	p.servers.Go(func() {
		if err := server.serve(listener); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failures = append(p.failures, err)
		}
	})
	return Endpoint{URL: "https://" + listener.Addr().String(), CA: p.ca}, nil
}

// Route opens a listener like Listen and changes the client configuration of a replica to
// use it.
func (p *Proxy) Route(subject string, config *rest.Config) error {
	endpoint, err := p.Listen(subject)
	if err != nil {
		return err
	}
	config.Host, config.CAData = endpoint.URL, endpoint.CA
	return nil
}

// OnRequest adds a fault that is called for every request. After remove has returned, the
// fault is not called again.
func (p *Proxy) OnRequest(fault RequestFault) (remove func()) {
	return p.requestFaults.add(fault)
}

// OnWatchEvent adds a fault that is called for every watch event. After remove has returned,
// the fault is not called again, and the proxy delivers the events that the fault held, in
// order.
func (p *Proxy) OnWatchEvent(fault WatchFault) (remove func()) {
	return p.watchFaults.add(fault)
}

// Stop closes the listeners, breaks all connections and waits until all goroutines have
// ended or ctx is done. It may be called again. Its error says that requests are still in
// flight, or which listener failed.
func (p *Proxy) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopped = true
	instances := p.instances
	p.mu.Unlock()

	p.cancel()
	var errs []error
	for _, instance := range instances {
		errs = append(errs, instance.close())
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
		return fmt.Errorf("fault proxy: requests are still in flight: %w", ctx.Err())
	}
	for _, instance := range instances {
		instance.transports.closeIdle() // connections that the last requests released
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(append(errs, p.failures...)...)
}

// enter registers a request in flight, so that Stop can wait for it. It returns false
// if the proxy is stopping.
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
