package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/internal/tcp"
)

// subjectConn is a TCP connection from the controller under test to the fault proxy.
//
// The proxy records a response before it writes the response. When a fault resets the connection,
// the proxy first waits until all recorded responses are written. Otherwise the history would
// contain responses that the controller did not receive.
type subjectConn struct {
	net.Conn
	// delivering prevents a reset while a response or event is recorded but not yet written. A
	// goroutine that records and writes a response or event locks delivering for reading.
	// resetAfterWrites locks it for writing.
	delivering sync.RWMutex
	// writes is incremented before and after each write to the connection. An odd number means
	// that a write is in progress. resetAfterWrites also uses it to detect writes since its last
	// check.
	writes atomic.Int64
	// broken is true after the fault proxy has reset the connection. Requests on the connection
	// may detect the reset only later.
	broken atomic.Bool
}

// Write writes bytes to the connection. It increments c.writes before and after the write, so that
// resetAfterWrites can detect a write in progress.
func (c *subjectConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	defer c.writes.Add(1)
	return c.Conn.Write(b)
}

// SetLinger sets the linger time of the TCP connection. [tcp.Reset] sets it to 0, so that closing
// the connection sends a TCP reset.
func (c *subjectConn) SetLinger(seconds int) error {
	lingerer, ok := c.Conn.(interface{ SetLinger(int) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return lingerer.SetLinger(seconds)
}

const (
	// writeQuietPeriod is how long a connection must be without writes until resetAfterWrites
	// assumes that all recorded responses are on it. The wait is needed because Flush in a handler
	// returns before the HTTP/2 server writes the response to the connection.
	writeQuietPeriod = 10 * time.Millisecond
	// writeDrainTimeout is the maximum time that Reset waits for pending writes. A paused
	// subject does not read from its connection, so writes to it never finish.
	writeDrainTimeout = time.Second
)

// resetAfterWrites resets the connection, which breaks all requests on it. It first waits until
// all recorded responses are written. When the argument timeout, a channel, receives a value, it
// stops waiting. The argument conn is the TLS connection on top of c. The caller must not hold the
// lock c.delivering.
func (c *subjectConn) resetAfterWrites(conn net.Conn, timeout <-chan time.Time) {
	tick := time.NewTicker(writeQuietPeriod)
	defer tick.Stop()
	locked := c.delivering.TryLock()
	for written := int64(-1); ; {
		select {
		case <-timeout:
		case <-tick.C:
			if locked = locked || c.delivering.TryLock(); !locked {
				continue
			}
			now := c.writes.Load()
			if quiet := now == written && now%2 == 0; !quiet {
				written = now
				continue
			}
		}
		break
	}
	c.broken.Store(true)
	tcp.Reset(conn)
	if locked {
		c.delivering.Unlock()
	}
}

// subjectListener is a listener whose Accept returns connections of type subjectConn, which a fault
// can reset.
type subjectListener struct{ net.Listener }

// Accept waits for the next connection and wraps it in a subjectConn.
func (l subjectListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &subjectConn{Conn: conn}, nil
}

// requestConn is the connection on which a request arrived. It implements
// [interceptor.Connection].
type requestConn struct {
	*subjectConn
	tls net.Conn // the TLS connection on top of subjectConn
}

// connOf returns the connection on which a request arrived. ctx is the request's context.
func connOf(ctx context.Context) requestConn {
	conn := ctx.Value(connKey{}).(*tls.Conn)
	return requestConn{conn.NetConn().(*subjectConn), conn}
}

// BeginDelivery prevents a reset of the connection until EndDelivery is called. The interceptor
// calls it before it records a response or watch event. If a reset is in progress, BeginDelivery
// waits until the reset has ended.
func (c requestConn) BeginDelivery() { c.delivering.RLock() }

// EndDelivery ends a delivery that BeginDelivery began: the response or event is written. A Reset
// that waits for deliveries continues when all deliveries have ended.
func (c requestConn) EndDelivery() { c.delivering.RUnlock() }

// Broken reports whether the connection was reset.
func (c requestConn) Broken() bool { return c.broken.Load() }

// Reset resets the connection after its recorded responses are written, or after
// writeDrainTimeout.
func (c requestConn) Reset() {
	c.resetAfterWrites(c.tls, time.After(writeDrainTimeout))
}
