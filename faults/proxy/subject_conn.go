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

// subjectConn is a TCP connection of the subject.
//
// The proxy records a response before it delivers the response. A fault may reset the
// connection, but only after all recorded responses are written. Otherwise the history would
// contain responses that the subject did not receive.
type subjectConn struct {
	net.Conn
	// delivering prevents a reset between the record of a response or event and its write.
	// The goroutine that records and writes it holds the lock for reading. resetAfterWrites
	// holds the lock for writing.
	delivering sync.RWMutex
	// writes is incremented before and after each write. With it, resetAfterWrites finds out
	// whether a write is in progress (odd number), or was made since its last check.
	writes atomic.Int64
	// broken is true after the proxy has reset the connection. Requests on the connection
	// may notice the reset only later.
	broken atomic.Bool
}

// Write writes the bytes to the connection, and increments c.writes before and after it.
func (c *subjectConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	defer c.writes.Add(1)
	return c.Conn.Write(b)
}

// SetLinger sets the linger time of the TCP connection. [tcp.Reset] needs this method.
func (c *subjectConn) SetLinger(seconds int) error {
	lingerer, ok := c.Conn.(interface{ SetLinger(int) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return lingerer.SetLinger(seconds)
}

const (
	// writeQuietPeriod is the time without a write after which resetAfterWrites assumes that
	// all data is written.
	//
	// The HTTP/2 server writes a response shortly after its handler has flushed it.
	writeQuietPeriod = 10 * time.Millisecond
	// writeDrainTimeout is the maximum time that Reset waits for pending writes.
	// The writes of a paused subject never finish, because it does not read from its
	// connection.
	writeDrainTimeout = time.Second
)

// resetAfterWrites resets the connection, with all requests on it. Before the reset it waits
// until all recorded responses are written, or until timeout delivers a value. conn is the
// TLS connection over c. The caller must not hold the lock delivering.
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

// subjectListener is a listener whose connections are of type subjectConn.
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
	tls net.Conn // the TLS connection over subjectConn
}

// connOf returns the connection on which a request arrived. ctx is the context of the
// request.
func connOf(ctx context.Context) requestConn {
	conn := ctx.Value(connKey{}).(*tls.Conn)
	return requestConn{conn.NetConn().(*subjectConn), conn}
}

// BeginDelivery waits until no reset is in progress, and prevents a reset until
// EndDelivery.
func (c requestConn) BeginDelivery() { c.delivering.RLock() }

// EndDelivery ends a delivery. When no delivery is in progress any more, the connection may be
// reset.
func (c requestConn) EndDelivery() { c.delivering.RUnlock() }

// Broken reports whether the connection was reset.
func (c requestConn) Broken() bool { return c.broken.Load() }

// Reset resets the connection after its recorded responses are written.
func (c requestConn) Reset() {
	c.resetAfterWrites(c.tls, time.After(writeDrainTimeout))
}
