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

// subjectConn is a TCP connection of the subject. The history records a response before it
// is delivered. The connection is therefore reset only after all recorded responses are
// written: otherwise the history would record responses that the subject did not receive.
type subjectConn struct {
	net.Conn
	// delivering is read-locked from the record of a response or event until it is flushed,
	// and write-locked while the connection is reset.
	delivering sync.RWMutex
	// writes counts the starts and ends of writes. It is even when no write is in progress.
	writes atomic.Int64
	// broken is set when the connection is reset; requests on it may not have noticed.
	broken atomic.Bool
}

func (c *subjectConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	defer c.writes.Add(1)
	return c.Conn.Write(b)
}

// SetLinger implements the method that [tcp.Reset] requires.
func (c *subjectConn) SetLinger(seconds int) error {
	lingerer, ok := c.Conn.(interface{ SetLinger(int) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return lingerer.SetLinger(seconds)
}

const (
	// writeQuietPeriod is the time without writes after which all data counts as
	// flushed. It is needed because the HTTP/2 server writes a response shortly after
	// the handler flushes it.
	writeQuietPeriod = 10 * time.Millisecond
	// writeDrainTimeout limits the wait for pending writes, because a paused subject
	// does not read from its connection.
	writeDrainTimeout = time.Second
)

// resetAfterWrites resets the connection, with all requests on it, after the recorded
// responses are written or timeout fires. The caller must not hold delivering.
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

// subjectListener wraps each accepted connection in a subjectConn.
type subjectListener struct{ net.Listener }

func (l subjectListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &subjectConn{Conn: conn}, nil
}

// connOf returns the subjectConn and the TLS connection of a request, nil if there are none.
func connOf(ctx context.Context) (*subjectConn, net.Conn) {
	conn, ok := ctx.Value(connKey{}).(*tls.Conn)
	if !ok {
		return nil, nil
	}
	c, _ := conn.NetConn().(*subjectConn)
	return c, conn
}

// resetConnection resets the connection of a request.
func resetConnection(ctx context.Context) {
	if c, conn := connOf(ctx); c != nil {
		c.resetAfterWrites(conn, time.After(writeDrainTimeout))
	}
}
