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

// Options contains the settings of [Serve], which runs the relay in the pod.
type Options struct {
	// Subject is the TCP listener to which the controller under test connects. Serve closes it.
	Subject net.Listener
	// Control is the TCP listener to which the gauntlet process connects. Serve closes it.
	Control net.Listener
	// Identity authenticates the relay in the pod. It is the first result of [NewPair].
	Identity Identity
	// Patience is the maximum time that the tested controller's connection waits for an idle
	// connection of the relay's pool. After that time, Serve resets the controller's connection.
	// Patience must be longer than the time that the gauntlet process needs to open a connection.
	Patience time.Duration
	// Log is called with a text about each failure. Log may be nil.
	Log func(format string, args ...any)
}

// idleMax is the maximum number of idle connections in the relay's pool. A gauntlet process that is
// killed can leave dead connections in the pool. Without this limit, each killed process would add
// more dead connections.
const idleMax = 64

// server is the relay that runs in the pod; see [Serve]. It accepts connections of the controller
// under test and of the gauntlet process.
type server struct {
	Options
	controlTLS *tls.Config

	mu   sync.Mutex
	pool []*idleConn   // idle connections; the newest is last
	grew chan struct{} // closed and replaced by a new channel when a connection is added to the pool
}

// idleConn is an idle connection in the relay's pool. The gauntlet process has opened this
// connection. The relay later forwards a connection of the controller under test through it.
type idleConn struct {
	conn *tls.Conn
	// joined receives nil when messageJoined has arrived. It receives an error if the connection
	// breaks earlier.
	joined chan error
}

// Serve runs the relay in the pod until ctx is canceled. It then resets all connections, waits
// until its goroutines have ended and returns nil. It returns an error if the identity is
// invalid or a listener fails.
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

// accept accepts connections of a listener until ctx is canceled, and then returns nil. For each
// connection, it calls the callback handle in a new goroutine. accept returns only after all these
// calls have returned. It returns an error if the listener fails.
func accept(ctx context.Context, listener net.Listener, handle func(context.Context, net.Conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer cancel() // runs before handlers.Wait, so that the calls of handle end after a failure of the listener
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
			return fmt.Errorf("relay: accepting connections on %s: %w", listener.Addr(), err)
		}
		handlers.Go(func() { handle(ctx, conn) })
	}
}

// park adds to the relay's pool a connection that the gauntlet process has opened. It returns when
// the gauntlet process has joined this connection with the fault proxy, or when this connection
// breaks.
func (s *server) park(ctx context.Context, accepted net.Conn) {
	raw, err := newTunnelConn(accepted)
	if err != nil {
		s.Log("rejected a connection from %s to the control listener: %v", accepted.RemoteAddr(), err)
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
		s.Log("rejected a connection from %s to the control listener: %v", raw.RemoteAddr(), err)
		_ = conn.Close() // Close instead of a reset, so that the client receives the TLS alert
		return
	}
	_ = conn.SetDeadline(time.Time{})
	idle := &idleConn{conn: conn, joined: make(chan error, 1)}
	s.addToPool(idle)
	err = receiveMessage(conn, messageJoined)
	cancelReset() // from now on, join resets the connection if ctx is canceled
	if err != nil {
		tcp.Reset(conn)
		s.removeFromPool(idle)
	}
	idle.joined <- err
}

// addToPool adds an idle connection to the relay's pool. If the pool then has more than idleMax
// connections, addToPool resets and removes the oldest connection.
func (s *server) addToPool(idle *idleConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool = append(s.pool, idle)
	if len(s.pool) > idleMax {
		tcp.Reset(s.pool[0].conn) // the reset makes receiveMessage in park return an error
		s.pool = s.pool[1:]
	}
	close(s.grew)
	s.grew = make(chan struct{})
}

// removeFromPool removes a broken connection from the relay's pool. It does nothing if the pool
// does not contain this connection.
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

// forward joins a connection of the controller under test with a connection to the fault proxy. If
// no connection to the proxy is possible, forward resets the controller's connection.
func (s *server) forward(ctx context.Context, raw net.Conn) {
	subject, ok := raw.(duplexConn)
	if !ok {
		s.Log("rejected a connection of the subject: it has the type %T; expected a type with a CloseWrite method", raw)
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

// connectProxy takes a connection from the pool, and asks the gauntlet process to join this
// connection with the fault proxy. It returns the joined connection. It discards broken
// connections and tries the next one. If it finds no usable connection within s.Patience, it
// returns an error.
func (s *server) connectProxy(ctx context.Context) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("the gauntlet process opened no usable connection within %s", s.Patience))
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
		s.Log("discarded an idle connection from the gauntlet process: %v", err)
	}
}

// connectProxy asks the gauntlet process to join this connection with the fault proxy. It returns
// nil after the gauntlet process has confirmed that it has joined the connections.
func (idle *idleConn) connectProxy(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, fmt.Errorf("the gauntlet process did not answer within %s", joinTimeout))
	defer cancel()
	cancelReset := context.AfterFunc(ctx, func() { tcp.Reset(idle.conn) }) // the reset makes receiveMessage in park return an error
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
