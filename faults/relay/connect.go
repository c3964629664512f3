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

// TunnelOptions contains the addresses and credentials of a [Tunnel]. The tunnel connects a relay,
// which runs in the tested controller's pod, with the fault proxy.
type TunnelOptions struct {
	// Name is the name that the caller passed to [NewPair], such as "subject-0". The Tunnel
	// connects only to a relay whose certificate contains this name.
	Name string
	// Identity authenticates the gauntlet process. It is the second result of [NewPair].
	Identity Identity
	// Relay opens a TCP connection to the relay in the pod.
	Relay func(context.Context) (net.Conn, error)
	// Proxy opens a TCP connection to the fault proxy.
	Proxy func(context.Context) (net.Conn, error)
	// OnLost is a function that the Tunnel calls when an idle connection to the relay breaks.
	// The relay has then exited or cannot be reached. OnLost may be nil. OnLost must not block.
	OnLost func(error)
}

const (
	// idleWanted is the number of idle connections to the relay that a Tunnel keeps open.
	//
	// A controller under test opens one connection for each of its clients. idleWanted is larger
	// than the number of connections that the controller opens at the same time.
	idleWanted = 4
	// backoffMin and backoffMax are the shortest and the longest time between two attempts to
	// connect to the relay. The time between attempts doubles after each failed attempt.
	backoffMin = 20 * time.Millisecond
	backoffMax = time.Second
)

// Tunnel connects the relay in a pod with the fault proxy. The relay is the container through
// which the subject, the controllers under test, sends its requests. A Tunnel runs in the
// gauntlet process, and keeps idle connections to the relay open. When the subject needs a
// connection, the Tunnel joins one of the idle connections with the fault proxy.
type Tunnel struct {
	options TunnelOptions
	tls     *tls.Config
	ctx     context.Context
	cancel  context.CancelFunc
	all     sync.WaitGroup // all goroutines of the Tunnel

	once  sync.Once     // makes sure that the channel ready is closed only once
	ready chan struct{} // closed after the relay has added the first connection to its pool

	mu      sync.Mutex
	lastErr error // latest error of an attempt to connect to the relay or to the fault proxy
}

// Connect starts a [Tunnel] and returns at once. The relay may start later. Canceling ctx does
// not stop the Tunnel; call [Tunnel.Close].
func Connect(ctx context.Context, o TunnelOptions) (*Tunnel, error) {
	config, err := o.Identity.tls()
	if err != nil {
		return nil, err
	}
	config.ServerName = o.Name
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &Tunnel{options: o, tls: config, ctx: ctx, cancel: cancel, ready: make(chan struct{}), lastErr: errors.New("none")}
	for range idleWanted {
		t.all.Go(t.maintainIdle)
	}
	return t, nil
}

// Close resets all connections of the Tunnel and waits until its goroutines have ended. Close
// may be called more than once.
func (t *Tunnel) Close() {
	t.cancel()
	t.all.Wait()
}

// WaitReady waits until the relay has added the first connection of the Tunnel to its pool. If
// ctx is canceled first, the error contains the latest failure to connect.
func (t *Tunnel) WaitReady(ctx context.Context) error {
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	case <-t.ctx.Done():
		return fmt.Errorf("connecting to the relay in the pod of %s: gauntlet closed the tunnel", t.options.Name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Errorf("connecting to the relay in the pod of %s: %w; last error: %w", t.options.Name, context.Cause(ctx), t.lastErr)
}

// maintainIdle keeps one idle connection to the relay open. It opens the next connection when the
// relay takes this connection for the controller under test. It does the same when the connection
// breaks.
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
				t.options.OnLost(fmt.Errorf("an idle connection to the relay in the pod of %s broke: %w", t.options.Name, err))
			}
			// The relay had accepted the connection before it broke. The relay may be failing,
			// so the next attempt waits.
			t.sleep(backoffMin)
		}
	}
}

// openIdle opens a connection to the relay. It returns after the relay has added the connection
// to its pool.
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

// forward opens a connection to the fault proxy and joins it with a connection to the relay. The
// argument conn is this second connection, which the relay has taken from its pool for the
// controller under test.
func (t *Tunnel) forward(conn *tls.Conn) {
	ctx, cancel := context.WithTimeout(t.ctx, joinTimeout)
	defer cancel()
	raw, err := t.options.Proxy(ctx)
	if err != nil {
		tcp.Reset(conn) // after the reset, the relay tries its next idle connection, if there is one
		t.setLastErr(err)
		return
	}
	proxy, ok := raw.(duplexConn)
	if !ok {
		t.setLastErr(fmt.Errorf("the connection to the fault proxy has the type %T; expected a type with a CloseWrite method", raw))
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

// setLastErr stores the error of a failed attempt to connect. It ignores errors after Close,
// because Close may have caused them.
func (t *Tunnel) setLastErr(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() == nil {
		t.lastErr = err
	}
}

// sleep waits for the given time and returns true. If the Tunnel is closed first, it
// returns false at once.
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
