package proxy

import (
	"net/http"
	"sync"
)

// laneMax is how many requests, watches included, go over one connection to the
// API server at a time, which allows 100 streams on each. The transport's own
// ways to keep to that limit do not do: by default each request of a burst that
// finds no stream free dials, which makes dozens of handshakes for 1000 pods, and
// StrictMaxConcurrentRequests counts waiting requests as streams, and so comes to
// a standstill once 100 wait.
const laneMax = 80

// lanes are the connections of one subject instance to the API server. When all
// are full another is opened, so that no request ever waits for another: a slow
// create must not keep back the renewal of a lease.
type lanes struct {
	open func() *http.Transport

	mu  sync.Mutex
	all []*lane
}

// lane is a transport that is given no more requests than one connection takes.
type lane struct {
	*http.Transport
	busy int
}

// enter returns a lane that has room, to be left when the answer has been read.
func (l *lanes) enter() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, candidate := range l.all {
		if candidate.busy < laneMax {
			candidate.busy++
			return candidate
		}
	}
	opened := &lane{Transport: l.open(), busy: 1}
	l.all = append(l.all, opened)
	return opened
}

func (l *lanes) leave(left *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left.busy--
}

// closeIdle closes the connections that carry nothing.
func (l *lanes) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		one.CloseIdleConnections()
	}
}
