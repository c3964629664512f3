package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-gauntlet/gauntlet/faults/internal/tcp"
)

// Options configures the end of the relay that runs in the pod.
type Options struct {
	// Subject is the TCP listener that the subject connects to. Serve closes it.
	Subject net.Listener
	// Control is the TCP listener that the test process connects to. Serve closes it.
	Control net.Listener
	// Identity authenticates this end.
	Identity Identity
	// Patience is how long a connection of the subject may wait for an idle connection
	// of the test process. After that time, Serve resets the connection. Patience must
	// exceed the time in which the test process opens one.
	Patience time.Duration
	// Log logs failures. It is optional.
	Log func(format string, args ...any)
}

// idleMax limits the number of idle connections.
// Without a limit, a test process that died without closing its connections would
// leave them in the pool.
const idleMax = 64

// server is the end of the relay that runs in the pod.
type server struct {
	Options
	controlTLS *tls.Config

	mu   sync.Mutex
	pool []*idleConn   // ordered by age; the newest is last
	grew chan struct{} // closed and replaced when a connection is added to the pool
}

// idleConn is a connection of the test process in the pool.
type idleConn struct {
	conn *tls.Conn
	// joined receives the result of waiting for messageJoined: nil, or an error if
	// the connection is unusable.
	joined chan error
}

// Serve runs the end of the relay in the pod until ctx is canceled.
// It then resets all connections and returns nil. All its goroutines have finished
// when it returns.
func Serve(ctx context.Context, o Options) error {
	control, err := o.Identity.tls()
	if err != nil {
		return errors.Join(err, o.Subject.Close(), o.Control.Close())
	}
	s := &server{Options: o, controlTLS: control, grew: make(chan struct{})}
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return accept(ctx, o.Control, s.park) })
	group.Go(func() error { return accept(ctx, o.Subject, s.forward) })
	return group.Wait()
}

// accept handles every connection of a listener in its own goroutine until ctx is canceled.
// It returns when all handlers have returned.
func accept(ctx context.Context, listener net.Listener, handle func(context.Context, net.Conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer cancel() // runs before handlers.Wait, so that a failed listener stops its handlers
	cancelClose := context.AfterFunc(ctx, func() { listener.Close() })
	defer cancelClose()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				tcp.Reset(conn)
			}
			return nil
		case err != nil:
			return fmt.Errorf("accepting connections on %s: %w", listener.Addr(), err)
		}
		handlers.Go(func() { handle(ctx, conn) })
	}
}

// park adds a connection of the test process to the pool and waits for messageJoined.
func (s *server) park(ctx context.Context, accepted net.Conn) {
	raw, err := newTunnelConn(accepted)
	if err != nil {
		s.Log("rejected connection from %s: %v", accepted.RemoteAddr(), err)
		_ = accepted.Close()
		return
	}
	cancelReset := context.AfterFunc(ctx, func() { tcp.Reset(raw) })
	conn := tls.Server(raw, s.controlTLS)
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	err = conn.HandshakeContext(ctx)
	if err == nil {
		err = sendMessage(conn, messageParked)
	}
	if err != nil {
		cancelReset()
		s.Log("rejected connection from %s: %v", raw.RemoteAddr(), err)
		_ = conn.Close() // not a reset, so that the client gets the TLS alert
		return
	}
	_ = conn.SetDeadline(time.Time{})
	idle := &idleConn{conn: conn, joined: make(chan error, 1)}
	s.addToPool(idle)
	err = receiveMessage(conn, messageJoined)
	cancelReset() // join now resets the connection if ctx is canceled
	if err != nil {
		tcp.Reset(conn)
		s.removeFromPool(idle)
	}
	idle.joined <- err
}

func (s *server) addToPool(idle *idleConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool = append(s.pool, idle)
	if len(s.pool) > idleMax {
		tcp.Reset(s.pool[0].conn) // makes receiveMessage in park return
		s.pool = s.pool[1:]
	}
	close(s.grew)
	s.grew = make(chan struct{})
}

func (s *server) removeFromPool(idle *idleConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.pool {
		if other == idle {
			s.pool = append(s.pool[:i], s.pool[i+1:]...)
			return
		}
	}
}

// forward forwards a connection of the subject to the proxy, or resets it if that is not possible.
func (s *server) forward(ctx context.Context, raw net.Conn) {
	subject, ok := raw.(duplexConn)
	if !ok {
		s.Log("rejected a connection of the subject: %T has no CloseWrite method", raw)
		_ = raw.Close()
		return
	}
	control, err := s.connectProxy(ctx)
	if err != nil {
		s.Log("rejected a connection of the subject: %v", err)
		tcp.Reset(subject)
		return
	}
	join(ctx, subject, control)
}

// connectProxy takes a connection from the pool and connects it to the proxy.
// It waits up to Patience for a connection, and discards unusable connections.
func (s *server) connectProxy(ctx context.Context) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("the test process opened no usable connection within %s", s.Patience))
	defer cancel()
	for {
		s.mu.Lock()
		grew := s.grew
		var idle *idleConn
		if last := len(s.pool) - 1; last >= 0 {
			idle, s.pool = s.pool[last], s.pool[:last]
		}
		s.mu.Unlock()
		if idle == nil {
			select {
			case <-grew:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		err := idle.connectProxy(ctx)
		if err == nil {
			return idle.conn, nil
		}
		s.Log("discarded an idle connection of the test process: %v", err)
	}
}

// connectProxy sends messageTaken and waits until the other end has connected to the proxy.
func (idle *idleConn) connectProxy(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, fmt.Errorf("the test process did not answer within %s", joinTimeout))
	defer cancel()
	cancelReset := context.AfterFunc(ctx, func() { tcp.Reset(idle.conn) }) // makes receiveMessage in park return
	err := sendMessage(idle.conn, messageTaken)
	if err != nil {
		tcp.Reset(idle.conn)
	}
	joined := <-idle.joined
	if !cancelReset() {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return joined
}
