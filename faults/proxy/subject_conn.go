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

// subjectConn is a connection of the subject, below TLS. The history tells of an answer
// before it is handed over, so a connection may be broken only when whatever was
// told of has left: else the subject would be held to know what never came.
type subjectConn struct {
	net.Conn
	// delivering is held for reading from the record of what the subject is told until
	// it is flushed, and for writing while the connection is broken.
	delivering sync.RWMutex
	// writes counts the writes begun and ended: it is even when none is under way.
	writes atomic.Int64
	// broken: it was cut, though its requests may not have been told.
	broken atomic.Bool
}

func (w *subjectConn) Write(b []byte) (int, error) {
	w.writes.Add(1)
	defer w.writes.Add(1)
	return w.Conn.Write(b)
}

// SetLinger lets [tcp.Reset] do its work.
func (w *subjectConn) SetLinger(seconds int) error {
	lingering, ok := w.Conn.(interface{ SetLinger(int) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return lingering.SetLinger(seconds)
}

const (
	// writeQuietPeriod is for how long nothing must be written for the HTTP/2 server, which
	// flushes what it was handed a moment later, to count as done.
	writeQuietPeriod = 10 * time.Millisecond
	// writeDrainTimeout bounds the wait: a subject that stands still reads nothing.
	writeDrainTimeout = time.Second
)

// resetAfterWrites breaks the connection as a process that dies breaks it, with whatever else
// is under way on it, but not before what the history tells of is on its way, or
// patience is over. No caller may be handing anything over itself.
func (w *subjectConn) resetAfterWrites(conn net.Conn, patience <-chan time.Time) {
	tick := time.NewTicker(writeQuietPeriod)
	defer tick.Stop()
	locked := w.delivering.TryLock()
	for written := int64(-1); ; {
		select {
		case <-patience:
		case <-tick.C:
			if locked = locked || w.delivering.TryLock(); !locked {
				continue
			}
			now := w.writes.Load()
			if still := now == written && now%2 == 0; !still {
				written = now
				continue
			}
		}
		break
	}
	w.broken.Store(true)
	tcp.Reset(conn)
	if locked {
		w.delivering.Unlock()
	}
}

// subjectListener is a listener whose connections are wires.
type subjectListener struct{ net.Listener }

func (l subjectListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &subjectConn{Conn: conn}, nil
}

// connOf returns the wire that a request came by, nil if it came by none, and its
// connection.
func connOf(ctx context.Context) (*subjectConn, net.Conn) {
	conn, ok := ctx.Value(connKey{}).(*tls.Conn)
	if !ok {
		return nil, nil
	}
	w, _ := conn.NetConn().(*subjectConn)
	return w, conn
}

// resetConnection breaks the connection that a request came on.
func resetConnection(ctx context.Context) {
	if w, conn := connOf(ctx); w != nil {
		w.resetAfterWrites(conn, time.After(writeDrainTimeout))
	}
}
