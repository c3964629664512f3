package proxy

import (
	"io"
	"net/http"
	"sync"
)

// streamsPerConn is the maximum number of concurrent requests, including watches, that the fault
// proxy sends on one connection. The API server allows 100.
//
// The proxy itself distributes requests over connections, because http.Transport does not do
// this well. By default, http.Transport opens a connection for each request that finds no free
// stream. For 1000 pods, this causes dozens of TLS handshakes. With StrictMaxConcurrentRequests,
// http.Transport counts waiting requests as streams, and blocks when 100 requests wait.
const streamsPerConn = 80

// transportPool contains one replica's connections to the API server.
//
// If every connection carries streamsPerConn requests, the pool opens another connection for the
// next request. Otherwise requests would wait, and slow creates could delay the renewal of the
// leader-election lease.
type transportPool struct {
	newTransport func() *http.Transport

	mu  sync.Mutex
	all []*pooledTransport
}

// pooledTransport is an http.Transport with a single connection and at most streamsPerConn
// requests at a time.
type pooledTransport struct {
	*http.Transport
	inUse int // number of requests in flight
}

// RoundTrip sends a request to the API server on a connection that has a free stream. The stream
// is in use until the caller closes the response body.
func (p *transportPool) RoundTrip(request *http.Request) (*http.Response, error) {
	transport := p.acquire()
	release := sync.OnceFunc(func() { p.release(transport) })
	response, err := transport.RoundTrip(request)
	if err != nil {
		release()
		return nil, err
	}
	response.Body = &releasingBody{response.Body, release}
	return response, nil
}

// releasingBody is a response body that calls its field release when the caller closes the body.
type releasingBody struct {
	io.ReadCloser
	release func()
}

// Close closes the response body. It also calls b.release, which returns the request's stream to
// the pool.
func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// acquire returns a transport that carries fewer than streamsPerConn requests. It adds one to
// the transport's number of requests, for the caller's request.
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

// release tells the pool that a request on the transport has ended. Another request can then use
// the transport.
func (p *transportPool) release(t *pooledTransport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.inUse--
}

// closeIdle closes the connections on which no request is in flight.
func (p *transportPool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		one.CloseIdleConnections()
	}
}
