// Package proxy implements the fault proxy, the subject's only connection to the API server. The
// subject is the controllers under test. To test an unmodified binary, give it a kubeconfig that
// points to the proxy.
//
// The proxy carries requests and responses over sockets. It passes every request to package
// interceptor, which records the request and applies the effects of faults. Without a fault, the
// proxy differs from a direct connection in only two ways. It does not compress responses, and
// clients cannot upgrade a connection (exec, port-forward).
//
// instance_server.go listens for one replica of the subject, and subject_conn.go resets the
// replica's connections. transport_pool.go opens connections to the API server.
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
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
)

// Options says with which API server a [Proxy] connects the controller under test, and how it
// records and changes requests.
type Options struct {
	// Target is the URL of the API server. It must have the scheme https and a host, and no
	// path.
	Target *url.URL
	// TargetCA is a CA certificate in PEM, with which the fault proxy verifies the API server's
	// certificate.
	TargetCA []byte
	// Interceptor records the tested controller's requests and applies the effects of faults.
	Interceptor *interceptor.Interceptor
	// Clock provides the time from which the fault proxy's certificate is valid.
	Clock clock.PassiveClock
	// Dial opens a connection to the API server. If Dial is nil, the fault proxy uses a
	// net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Proxy forwards the requests of all replicas of the subject to one API server. The subject is
// the controllers under test. [Start] creates a Proxy.
type Proxy struct {
	ctx         context.Context // Stop cancels this context, which ends all requests
	cancel      context.CancelFunc
	target      *url.URL
	targetCA    *x509.CertPool
	interceptor *interceptor.Interceptor
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	certificate tls.Certificate // TLS certificate that every listener of the proxy uses
	ca          []byte          // CA certificate that signed the certificate in the field certificate, in PEM

	mu        sync.RWMutex
	instances map[string]*instanceServer // one server for each replica; the key is its name
	stopped   bool
	handlers  sync.WaitGroup // requests in flight
	servers   sync.WaitGroup // goroutines that accept connections
	failures  []error        // errors of listeners that failed
}

// Endpoint says how one replica of the controller under test connects to the fault proxy. URL is
// the address of the replica's listener. CA is the certificate with which the replica verifies the
// proxy's certificate.
type Endpoint struct {
	URL string
	CA  []byte // CA certificate in PEM
}

// Start returns a fault proxy that has no listener yet. Call [Proxy.Listen] for each replica of
// the controller under test, and [Proxy.Stop] at the end. Canceling ctx breaks all requests in
// flight, but does not close the listeners.
func Start(ctx context.Context, options Options) (*Proxy, error) {
	target := options.Target
	if target.Scheme != "https" || target.Host == "" || (target.Path != "" && target.Path != "/") {
		return nil, fmt.Errorf("fault proxy: the target %q is not the URL of an API server; expected https://host:port", target)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(options.TargetCA) {
		return nil, errors.New("fault proxy: found no certificate in the CA of the API server; expected certificates in PEM")
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
		ctx:         ctx,
		cancel:      cancel,
		target:      target,
		targetCA:    pool,
		interceptor: options.Interceptor,
		dial:        dial,
		certificate: certificate,
		ca:          ca,
		instances:   map[string]*instanceServer{},
	}, nil
}

// Listen opens a listener on 127.0.0.1 for one replica of the controller under test, such as
// "subject-0". The history lists the requests on this listener under the replica's name. A
// restarted replica uses the same listener.
func (p *Proxy) Listen(subject string) (Endpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return Endpoint{}, fmt.Errorf("fault proxy: cannot listen for replica %s: the proxy has stopped", subject)
	case p.instances[subject] != nil:
		return Endpoint{}, fmt.Errorf("fault proxy: cannot listen for replica %s: the replica already has a listener; call Listen once for each replica, and use the same URL after a restart", subject)
	}
	listener, err := (&net.ListenConfig{}).Listen(p.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Endpoint{}, fmt.Errorf("fault proxy: cannot listen for replica %s: %w", subject, err)
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

// Route opens a listener for a replica, as Listen does. It then changes the replica's client
// configuration, so that the replica sends its requests to the listener.
func (p *Proxy) Route(subject string, config *rest.Config) error {
	endpoint, err := p.Listen(subject)
	if err != nil {
		return err
	}
	config.Host, config.CAData = endpoint.URL, endpoint.CA
	return nil
}

// Stop closes the listeners, breaks all connections and waits until all goroutines have ended.
// It returns an error if ctx is done before that, or if a listener failed earlier. Stop may be
// called more than once.
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
		return fmt.Errorf("stopping the fault proxy: requests are still in flight: %w", ctx.Err())
	}
	for _, instance := range instances {
		instance.transports.closeIdle() // all requests have ended, so all connections are idle
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(append(errs, p.failures...)...)
}

// enter registers a new request, so that Stop waits until the request has ended. If enter
// returns true, the caller must call p.handlers.Done after the request.
//
// After a call of Stop, enter returns false, and the caller must not serve the request.
func (p *Proxy) enter() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.stopped {
		return false
	}
	p.handlers.Add(1)
	return true
}

// stopping reports whether Stop was called, or the context that Start received was canceled.
func (p *Proxy) stopping() bool { return p.ctx.Err() != nil }
