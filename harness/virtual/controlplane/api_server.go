package controlplane

import (
	"context"
	"net/http"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
	"github.com/kube-gauntlet/gauntlet/harness/internal/memetcd"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

// apiServer is the API server of a control plane, which can be stopped and started again. It carries
// the requests of all clients, and so implements http.RoundTripper. While no API server runs, the
// requests fail with ECONNREFUSED.
type apiServer struct {
	etcd    *memetcd.Store
	latency *latency

	mu      sync.Mutex
	server  *apiserver.Server
	clients *inprocess.Client // connects clients to the latest server
	running chan struct{}     // closed when the halted API server runs again; nil while it runs
	ending  sync.WaitGroup    // halted servers whose goroutines have not ended
}

// RoundTrip sends a request to the API server.
func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	clients := a.clients
	a.mu.Unlock()
	return clients.RoundTrip(r)
}

// start starts an API server, and returns when it serves requests. It has no effect while an API
// server runs. If etcd is halted, start waits until etcd runs again.
func (a *apiServer) start(ctx context.Context, options apiserver.Options) error {
	a.mu.Lock()
	runs := a.server != nil && a.running == nil
	a.mu.Unlock()
	if runs {
		return nil
	}
	server, err := apiserver.New(context.WithoutCancel(ctx), a.etcd.Client, options)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server, a.clients = server, inprocess.Direct(a.latency.before(server.Handler))
	if a.running != nil {
		close(a.running)
		a.running = nil
	}
	return nil
}

// halt stops the API server, as if its process was killed: all connections break. A second call has
// no effect.
func (a *apiServer) halt() {
	a.mu.Lock()
	if a.running != nil {
		a.mu.Unlock()
		return
	}
	a.running = make(chan struct{})
	server, clients := a.server, a.clients
	a.mu.Unlock()
	clients.Close()
	a.ending.Go(server.Stop) // takes seconds, for goroutines without effect on clients
}

// awaitRunning waits until the API server runs. It returns an error if ctx ends earlier.
func (a *apiServer) awaitRunning(ctx context.Context) error {
	a.mu.Lock()
	running := a.running
	a.mu.Unlock()
	if running == nil {
		return nil
	}
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop stops the API server for good.
func (a *apiServer) stop() {
	a.halt()
	a.ending.Wait()
}
