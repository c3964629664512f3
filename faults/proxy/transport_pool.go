package proxy

import (
	"net/http"
	"sync"
)

// streamsPerConn is the number of concurrent requests, watches included, on one connection
// to the API server. The API server allows 100 streams. By default, http.Transport dials a
// new connection for each request that finds no free stream, which makes dozens of TLS
// handshakes for 1000 pods. With StrictMaxConcurrentRequests, it counts waiting requests as
// streams and blocks when 100 requests wait.
const streamsPerConn = 80

// transportPool holds one replica's connections to the API server. It opens another
// connection when all are full. Otherwise a request would wait for another, and a slow
// create would delay the renewal of a lease.
type transportPool struct {
	newTransport func() *http.Transport

	mu  sync.Mutex
	all []*pooledTransport
}

// pooledTransport is a transport with one connection and at most streamsPerConn requests.
type pooledTransport struct {
	*http.Transport
	inUse int
}

// acquire returns a transport with a free stream. The caller must release the stream
// after it has read the response.
func (p *transportPool) acquire() *pooledTransport {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, candidate := range p.all {
		if candidate.inUse < streamsPerConn {
			candidate.inUse++
			return candidate
		}
	}
	opened := &pooledTransport{Transport: p.newTransport(), inUse: 1}
	p.all = append(p.all, opened)
	return opened
}

func (p *transportPool) release(t *pooledTransport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.inUse--
}

// closeIdle closes the connections without requests.
func (p *transportPool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		one.CloseIdleConnections()
	}
}
