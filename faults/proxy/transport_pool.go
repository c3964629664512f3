package proxy

import (
	"net/http"
	"sync"
)

// streamsPerConn is how many requests, watches included, go over one connection to the
// API server at a time, which allows 100 streams on each. The transport's own
// ways to keep to that limit do not do: by default each request of a burst that
// finds no stream free dials, which makes dozens of handshakes for 1000 pods, and
// StrictMaxConcurrentRequests counts waiting requests as streams, and so comes to
// a standstill once 100 wait.
const streamsPerConn = 80

// transportPool are the connections of one subject instance to the API server. When all
// are full another is opened, so that no request ever waits for another: a slow
// create must not keep back the renewal of a lease.
type transportPool struct {
	newTransport func() *http.Transport

	mu  sync.Mutex
	all []*pooledTransport
}

// pooledTransport is a transport that is given no more requests than one connection takes.
type pooledTransport struct {
	*http.Transport
	inUse int
}

// acquire returns a lane that has room, to be left when the answer has been read.
func (l *transportPool) acquire() *pooledTransport {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, candidate := range l.all {
		if candidate.inUse < streamsPerConn {
			candidate.inUse++
			return candidate
		}
	}
	opened := &pooledTransport{Transport: l.newTransport(), inUse: 1}
	l.all = append(l.all, opened)
	return opened
}

func (l *transportPool) release(left *pooledTransport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left.inUse--
}

// closeIdle closes the connections that carry nothing.
func (l *transportPool) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		one.CloseIdleConnections()
	}
}
