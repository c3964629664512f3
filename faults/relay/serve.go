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

// Options says between whom the end in the pod stands.
type Options struct {
	// Subject is where the subject connects; Control is where the test process
	// does. Both take TCP, and Serve closes them.
	Subject, Control net.Listener
	Identity         Identity
	// Patience is how long the subject is kept waiting when no connection is
	// parked, before it is refused: more than the test process takes to park one.
	Patience time.Duration
	// Log, if set, is told what goes wrong.
	Log func(format string, args ...any)
}

// sparesMax bounds the connections that wait parked: a test process that has
// gone without a word leaves its own.
const sparesMax = 64

// server is the end in the pod.
type server struct {
	Options
	control *tls.Config

	mu     sync.Mutex
	spares []*spare      // the one parked last at the end
	parked chan struct{} // closed, and replaced, when one is parked
}

// spare is a connection of the test process that waits for the subject.
type spare struct {
	conn *tls.Conn
	// heard gets what came of waiting for wordJoined: nil, or that the connection
	// is of no use.
	heard chan error
}

// Serve is the end in the pod, until ctx ends, which breaks every connection and
// is no error. When it returns, nothing of it runs any more.
func Serve(ctx context.Context, o Options) error {
	control, err := o.Identity.tls()
	if err != nil {
		return errors.Join(err, o.Subject.Close(), o.Control.Close())
	}
	s := &server{Options: o, control: control, parked: make(chan struct{})}
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return accept(ctx, o.Control, s.park) })
	group.Go(func() error { return accept(ctx, o.Subject, s.serve) })
	return group.Wait()
}

// accept handles every connection of a listener in a goroutine of its own, until
// ctx ends, and returns when all have.
func accept(ctx context.Context, listener net.Listener, handle func(context.Context, net.Conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer cancel() // before the wait: a listener that fails ends its connections
	unwatch := context.AfterFunc(ctx, func() { listener.Close() })
	defer unwatch()
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

// park takes in a connection of the test process, and waits for what comes of it.
func (s *server) park(ctx context.Context, dialled net.Conn) {
	raw, err := overTLS(dialled)
	if err != nil {
		s.Log("refused %s: %v", dialled.RemoteAddr(), err)
		_ = dialled.Close()
		return
	}
	unwatch := context.AfterFunc(ctx, func() { tcp.Reset(raw) })
	conn := tls.Server(raw, s.control)
	_ = conn.SetDeadline(time.Now().Add(handshakeMax))
	err = conn.HandshakeContext(ctx)
	if err == nil {
		err = say(conn, wordParked)
	}
	if err != nil {
		unwatch()
		s.Log("refused %s: %v", raw.RemoteAddr(), err)
		_ = conn.Close() // in order: the other end is told why
		return
	}
	_ = conn.SetDeadline(time.Time{})
	p := &spare{conn: conn, heard: make(chan error, 1)}
	s.add(p)
	err = hear(conn, wordJoined)
	unwatch() // from here on it is its taker's
	if err != nil {
		tcp.Reset(conn)
		s.remove(p)
	}
	p.heard <- err
}

func (s *server) add(p *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spares = append(s.spares, p)
	if len(s.spares) > sparesMax {
		tcp.Reset(s.spares[0].conn) // which ends its wait
		s.spares = s.spares[1:]
	}
	close(s.parked)
	s.parked = make(chan struct{})
}

func (s *server) remove(p *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.spares {
		if other == p {
			s.spares = append(s.spares[:i], s.spares[i+1:]...)
			return
		}
	}
}

// serve carries a connection of the subject, or refuses it.
func (s *server) serve(ctx context.Context, raw net.Conn) {
	subject, ok := raw.(duplex)
	if !ok {
		s.Log("refused the subject: a %T cannot end one direction", raw)
		_ = raw.Close()
		return
	}
	control, err := s.take(ctx)
	if err != nil {
		s.Log("refused the subject: %v", err)
		tcp.Reset(subject)
		return
	}
	join(ctx, subject, control)
}

// take returns a connection that the proxy is at the other end of.
func (s *server) take(ctx context.Context) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("no connection of the test process within %s", s.Patience))
	defer cancel()
	for {
		s.mu.Lock()
		parked := s.parked
		var p *spare
		if last := len(s.spares) - 1; last >= 0 {
			p, s.spares = s.spares[last], s.spares[:last]
		}
		s.mu.Unlock()
		if p == nil {
			select {
			case <-parked:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		err := p.take(ctx)
		if err == nil {
			return p.conn, nil
		}
		s.Log("a parked connection is of no use: %v", err)
	}
}

// take asks for the proxy at the other end and waits until it is there.
func (p *spare) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, joinMax, fmt.Errorf("no answer within %s", joinMax))
	defer cancel()
	unwatch := context.AfterFunc(ctx, func() { tcp.Reset(p.conn) }) // which ends the wait below
	err := say(p.conn, wordTaken)
	if err != nil {
		tcp.Reset(p.conn)
	}
	heard := <-p.heard
	if !unwatch() {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return heard
}
