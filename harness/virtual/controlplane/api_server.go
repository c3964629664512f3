package controlplane

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
	"github.com/kube-gauntlet/gauntlet/harness/internal/memetcd"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

// apiServer is the API server of a control plane, which can be stopped and started again. It carries
// the requests of all clients, and so implements http.RoundTripper. While no API server runs, the
// requests fail with ECONNREFUSED. Create it with newAPIServer.
type apiServer struct {
	etcd    *memetcd.Store
	latency *latency
	// changing has one element while a goroutine starts or stops the API server. In a bubble of
	// testing/synctest, the clock would stand still while another goroutine waits for a mutex.
	changing chan struct{}
	ending   sync.WaitGroup // halted servers whose goroutines have not ended

	mu      sync.Mutex
	server  *apiserver.Server // the API server that runs; nil if none runs
	clients *inprocess.Client // connects clients to the latest API server
	running chan struct{}     // closed when an API server runs; open while none runs
	stopped bool              // stop was called, so no API server starts any more
}

func newAPIServer(etcd *memetcd.Store, seed uint64) *apiServer {
	return &apiServer{etcd: etcd, latency: newLatency(seed), changing: make(chan struct{}, 1), running: make(chan struct{})}
}

// RoundTrip sends a request to the API server.
func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	clients := a.clients
	a.mu.Unlock()
	return clients.RoundTrip(r)
}

// start starts an API server, and returns when it serves requests. It has no effect while an API
// server runs. If etcd is halted, start waits until etcd runs again or ctx ends.
func (a *apiServer) start(ctx context.Context, options apiserver.Options) error {
	select {
	case a.changing <- struct{}{}:
		defer func() { <-a.changing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	a.mu.Lock()
	runs, stopped := a.server != nil, a.stopped
	a.mu.Unlock()
	switch {
	case stopped:
		return errors.New("the control plane has been stopped")
	case runs:
		return nil
	}
	if err := a.etcd.AwaitRunning(ctx); err != nil {
		return err
	}
	server, err := apiserver.New(ctx, a.etcd.Client, options)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server, a.clients = server, inprocess.Direct(a.latency.before(server.Handler))
	close(a.running)
	return nil
}

// halt stops the API server, as if its process was killed: all connections break. It has no effect
// while no API server runs.
func (a *apiServer) halt() {
	a.changing <- struct{}{}
	defer func() { <-a.changing }()
	a.mu.Lock()
	server, clients := a.server, a.clients
	if server != nil {
		a.server, a.running = nil, make(chan struct{})
	}
	a.mu.Unlock()
	if server == nil {
		return
	}
	clients.Abort()
	server.Abort() // handlers may wait for the API server itself
	clients.Close()
	a.ending.Go(server.Stop) // Stop waits for seconds, until goroutines that no client depends on have ended
}

// awaitRunning waits until the API server runs. It returns an error if ctx ends earlier.
func (a *apiServer) awaitRunning(ctx context.Context) error {
	a.mu.Lock()
	running := a.running
	a.mu.Unlock()
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop stops the API server for good.
func (a *apiServer) stop() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	a.halt()
	a.ending.Wait()
}
