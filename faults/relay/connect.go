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

// TunnelOptions configures a [Tunnel].
type TunnelOptions struct {
	// Name is the name in the certificate of the relay; see [NewPair].
	Name string
	// Identity authenticates this end.
	Identity Identity
	// Relay dials the relay in the pod over TCP.
	Relay func(context.Context) (net.Conn, error)
	// Proxy dials the fault proxy over TCP.
	Proxy func(context.Context) (net.Conn, error)
	// OnLost is called if an idle connection to the relay breaks: the relay has exited
	// or cannot be reached. It is optional and must not block.
	OnLost func(error)
}

const (
	// idleWanted is the number of idle connections that a Tunnel maintains. It exceeds
	// the number of connections that a subject opens at once, which is one for each of
	// its clients.
	idleWanted = 4
	// backoffMin and backoffMax are the limits of the exponential back-off between
	// attempts to connect to the relay.
	backoffMin = 20 * time.Millisecond
	backoffMax = time.Second
)

// Tunnel is the end of a relay tunnel that runs in the test process.
type Tunnel struct {
	options TunnelOptions
	tls     *tls.Config
	ctx     context.Context
	cancel  context.CancelFunc
	all     sync.WaitGroup

	once  sync.Once
	ready chan struct{} // closed when the first connection is in the pool of the relay

	mu      sync.Mutex
	lastErr error // of the last failed attempt to connect
}

// Connect starts to maintain idle connections to a relay and returns immediately.
// The relay may start later. Canceling ctx after Connect has returned has no effect;
// call [Tunnel.Close] to stop.
func Connect(ctx context.Context, o TunnelOptions) (*Tunnel, error) {
	config, err := o.Identity.tls()
	if err != nil {
		return nil, err
	}
	config.ServerName = o.Name
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &Tunnel{options: o, tls: config, ctx: ctx, cancel: cancel, ready: make(chan struct{}), lastErr: errors.New("no attempt has failed yet")}
	for range idleWanted {
		t.all.Go(t.maintainIdle)
	}
	return t, nil
}

// Close resets all connections and waits for all goroutines. It may be called more than once.
func (t *Tunnel) Close() {
	t.cancel()
	t.all.Wait()
}

// WaitReady returns when the relay has added the first connection to its pool.
// If ctx is canceled first, the error contains the last failure to connect.
func (t *Tunnel) WaitReady(ctx context.Context) error {
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	case <-t.ctx.Done():
		return fmt.Errorf("connecting to the relay of %s: the tunnel was closed", t.options.Name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Errorf("connecting to the relay of %s: %w; last failure: %w", t.options.Name, context.Cause(ctx), t.lastErr)
}

// maintainIdle maintains one idle connection to the relay. When the relay uses the
// connection for the subject, or the connection breaks, maintainIdle opens the next
// one.
func (t *Tunnel) maintainIdle() {
	backoff := backoffMin
	for t.ctx.Err() == nil {
		conn, err := t.openIdle()
		if err != nil {
			t.setLastErr(err)
			if !t.sleep(backoff) {
				return
			}
			backoff = min(2*backoff, backoffMax)
			continue
		}
		backoff = backoffMin
		t.once.Do(func() { close(t.ready) })
		cancelReset := context.AfterFunc(t.ctx, func() { tcp.Reset(conn) })
		err = receiveMessage(conn, messageTaken)
		cancelReset()
		switch {
		case err == nil:
			t.all.Go(func() { t.forward(conn) })
		case t.ctx.Err() == nil:
			tcp.Reset(conn)
			if t.options.OnLost != nil {
				t.options.OnLost(fmt.Errorf("an idle connection to the relay of %s broke: %w", t.options.Name, err))
			}
			// The relay accepted the connection and then dropped it. It may be
			// failing, so the next attempt waits.
			t.sleep(backoffMin)
		}
	}
}

// openIdle dials the relay and returns when the relay has added the connection to its pool.
func (t *Tunnel) openIdle() (conn *tls.Conn, err error) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, handshakeTimeout, fmt.Errorf("the relay did not accept the connection within %s", handshakeTimeout))
	defer cancel()
	dialed, err := t.options.Relay(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := newTunnelConn(dialed)
	if err != nil {
		return nil, errors.Join(err, dialed.Close())
	}
	cancelReset := context.AfterFunc(ctx, func() { tcp.Reset(raw) })
	conn = tls.Client(raw, t.tls)
	err = conn.HandshakeContext(ctx)
	if err == nil {
		err = receiveMessage(conn, messageParked)
	}
	if !cancelReset() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		tcp.Reset(conn)
		return nil, err
	}
	return conn, nil
}

// forward opens a connection to the proxy and joins it with a connection that the relay has taken.
func (t *Tunnel) forward(conn *tls.Conn) {
	ctx, cancel := context.WithTimeout(t.ctx, joinTimeout)
	defer cancel()
	raw, err := t.options.Proxy(ctx)
	if err != nil {
		tcp.Reset(conn) // the relay then tries another idle connection or rejects the subject
		t.setLastErr(err)
		return
	}
	proxy, ok := raw.(duplexConn)
	if !ok {
		t.setLastErr(fmt.Errorf("the connection to the proxy is a %T, which has no CloseWrite method", raw))
		_ = raw.Close()
		tcp.Reset(conn)
		return
	}
	if err := sendMessage(conn, messageJoined); err != nil {
		tcp.Reset(proxy)
		tcp.Reset(conn)
		return
	}
	join(t.ctx, conn, proxy)
}

// setLastErr stores the error of a failed attempt, unless Close caused the failure.
func (t *Tunnel) setLastErr(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() == nil {
		t.lastErr = err
	}
}

// sleep waits for the duration. It returns false immediately if the Tunnel is closed.
func (t *Tunnel) sleep(duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}
