package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/internal/tcp"
)

// TunnelOptions says what a line of the test process connects.
type TunnelOptions struct {
	// Name is the relay's, as its certificate has it; see [NewPair].
	Name     string
	Identity Identity
	// Relay dials the relay, Proxy where the subject's connections go to. Both
	// dial TCP.
	Relay, Proxy func(context.Context) (net.Conn, error)
	// OnLost, if set, is told that a parked connection broke, which means that the
	// relay is gone or cut off. It must be quick.
	OnLost func(error)
}

const (
	// sparesWanted is how many connections are kept parked: more than a subject
	// opens at once, which is one for each of its clients.
	sparesWanted = 4
	// A relay that cannot be reached is tried again after a pause, which doubles
	// from the first to the last.
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
)

// Tunnel is the test process's end of a relay.
type Tunnel struct {
	options TunnelOptions
	tls     *tls.Config
	ctx     context.Context
	cancel  context.CancelFunc
	all     sync.WaitGroup

	once  sync.Once
	ready chan struct{} // closed when the first connection is parked

	mu   sync.Mutex
	last error // of trying to park one
}

// Connect begins to keep connections parked at a relay, and returns at once: the
// relay need not be there yet. Cancelling ctx does nothing to it; Close it.
func Connect(ctx context.Context, o TunnelOptions) (*Tunnel, error) {
	config, err := o.Identity.tls()
	if err != nil {
		return nil, err
	}
	config.ServerName = o.Name
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Tunnel{options: o, tls: config, ctx: ctx, cancel: cancel, ready: make(chan struct{}), last: errors.New("nothing yet")}
	for range sparesWanted {
		l.all.Go(l.keepParked)
	}
	return l, nil
}

// Close breaks every connection and returns when nothing of the line runs any
// more. It may be called again.
func (l *Tunnel) Close() {
	l.cancel()
	l.all.Wait()
}

// WaitReady returns when the relay has taken in a first connection. Its error
// says what has been in the way.
func (l *Tunnel) WaitReady(ctx context.Context) error {
	select {
	case <-l.ready:
		return nil
	case <-ctx.Done():
	case <-l.ctx.Done():
		return fmt.Errorf("connecting to the relay of %s: the line was closed", l.options.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Errorf("connecting to the relay of %s: %w; last: %w", l.options.Name, context.Cause(ctx), l.last)
}

// keepParked keeps one connection parked: when it is taken, or breaks, the next.
func (l *Tunnel) keepParked() {
	pause := pauseMin
	for l.ctx.Err() == nil {
		conn, err := l.park()
		if err != nil {
			l.note(err)
			if !l.wait(pause) {
				return
			}
			pause = min(2*pause, pauseMax)
			continue
		}
		pause = pauseMin
		l.once.Do(func() { close(l.ready) })
		unwatch := context.AfterFunc(l.ctx, func() { tcp.Reset(conn) })
		err = hear(conn, wordTaken)
		unwatch()
		switch {
		case err == nil:
			l.all.Go(func() { l.carry(conn) })
		case l.ctx.Err() == nil:
			tcp.Reset(conn)
			if l.options.OnLost != nil {
				l.options.OnLost(fmt.Errorf("the relay of %s: a parked connection broke: %w", l.options.Name, err))
			}
			// The relay greets and then breaks only when it is in trouble: not at once again.
			l.wait(pauseMin)
		}
	}
}

// park dials the relay and returns once it has taken the connection in.
func (l *Tunnel) park() (conn *tls.Conn, err error) {
	ctx, cancel := context.WithTimeoutCause(l.ctx, handshakeMax, fmt.Errorf("not parked within %s", handshakeMax))
	defer cancel()
	dialled, err := l.options.Relay(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := overTLS(dialled)
	if err != nil {
		return nil, errors.Join(err, dialled.Close())
	}
	unwatch := context.AfterFunc(ctx, func() { tcp.Reset(raw) })
	conn = tls.Client(raw, l.tls)
	err = conn.HandshakeContext(ctx)
	if err == nil {
		err = hear(conn, wordParked)
	}
	if !unwatch() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		tcp.Reset(conn)
		return nil, err
	}
	return conn, nil
}

// carry joins a connection that was taken with one of the proxy.
func (l *Tunnel) carry(conn *tls.Conn) {
	ctx, cancel := context.WithTimeout(l.ctx, joinMax)
	defer cancel()
	raw, err := l.options.Proxy(ctx)
	if err != nil {
		tcp.Reset(conn) // the relay finds another, or refuses the subject
		l.note(err)
		return
	}
	proxy, ok := raw.(duplex)
	if !ok {
		l.note(fmt.Errorf("the proxy was dialled by a %T, which cannot end one direction", raw))
		_ = raw.Close()
		tcp.Reset(conn)
		return
	}
	if err := say(conn, wordJoined); err != nil {
		tcp.Reset(proxy)
		tcp.Reset(conn)
		return
	}
	join(l.ctx, conn, proxy)
}

func (l *Tunnel) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil { // else it broke because it was to
		l.last = err
	}
}

// wait reports whether the line still stands after a pause.
func (l *Tunnel) wait(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}
