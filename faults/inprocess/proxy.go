package inprocess

import (
	"context"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
)

// Proxy connects replicas of the controller under test to an interceptor by function calls. It is
// the counterpart of proxy.Proxy, which uses sockets. Create it with [NewProxy].
type Proxy struct {
	interceptor *interceptor.Interceptor
	upstream    http.RoundTripper

	mu      sync.Mutex
	clients map[string]*Client // the client of each replica, by the replica's name
}

// NewProxy returns a Proxy that passes requests to the interceptor i. The argument upstream is the
// transport with which the interceptor sends the requests to the API server.
func NewProxy(i *interceptor.Interceptor, upstream http.RoundTripper) *Proxy {
	return &Proxy{interceptor: i, upstream: upstream, clients: map[string]*Client{}}
}

// Route changes a client configuration, so that clients with this configuration send their requests
// through the Proxy. The interceptor records them as requests of the given replica, such as
// "subject-0". Route breaks the connections of an earlier instance of the replica.
func (p *Proxy) Route(replica string, config *rest.Config) error {
	p.Disconnect(replica)
	client := Connect(p.interceptor, replica, p.upstream)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[replica] = client
	config.Transport = client
	return nil
}

// Disconnect breaks the connections of a replica. Later requests of the replica fail. Disconnect
// does not wait for the requests in flight.
func (p *Proxy) Disconnect(replica string) {
	p.mu.Lock()
	client := p.clients[replica]
	p.mu.Unlock()
	if client != nil {
		client.Abort()
	}
}

// Stop breaks the connections of all replicas, and waits until the handlers of their requests have
// returned.
func (p *Proxy) Stop(context.Context) error {
	p.mu.Lock()
	clients := p.clients
	p.clients = map[string]*Client{}
	p.mu.Unlock()
	for _, client := range clients {
		client.Close()
	}
	return nil
}
