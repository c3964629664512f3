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

// TunnelOptions contains the settings of a [Tunnel].
type TunnelOptions struct {
	// Name is the name in the certificate of the relay, as given to [NewPair].
	Name string
	// Identity authenticates the gauntlet process. It is the second result of [NewPair].
	Identity Identity
	// Relay opens a TCP connection to the relay in the pod.
	Relay func(context.Context) (net.Conn, error)
	// Proxy opens a TCP connection to the fault proxy.
	Proxy func(context.Context) (net.Conn, error)
	// OnLost is called when an idle connection to the relay breaks. The relay has then
	// exited or cannot be reached. OnLost may be nil. It must not block.
	OnLost func(error)
}

const (
	// idleWanted is the number of idle connections to the relay that a Tunnel keeps open.
	//
	// It is larger than the number of connections that a subject opens at the same time: one
	// for each of its clients.
	idleWanted = 4
	// backoffMin and backoffMax are the shortest and the longest time between two attempts
	// to connect to the relay. The time doubles after each failed attempt.
	backoffMin = 20 * time.Millisecond
	backoffMax = time.Second
)

// Tunnel connects the relay in a pod with the fault proxy. It runs in the gauntlet process, and
// keeps idle connections to the relay open. When the subject needs one of them, the Tunnel
// connects it to the fault proxy.
type Tunnel struct {
	options TunnelOptions
	tls     *tls.Config
	ctx     context.Context
	cancel  context.CancelFunc
	all     sync.WaitGroup // goroutines of the Tunnel

	once  sync.Once     // closes ready
	ready chan struct{} // closed after the relay has accepted the first connection for its pool

	mu      sync.Mutex
	lastErr error // error of the last failed attempt to connect to the relay or to the proxy
}

// Connect starts a [Tunnel], which keeps idle connections to a relay open. It returns at
// once, and the relay may start later. Canceling ctx does not stop the Tunnel; call
// [Tunnel.Close].
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

// Close resets all connections of the Tunnel and waits for its goroutines. It may be called
// more than once.
func (t *Tunnel) Close() {
	t.cancel()
	t.all.Wait()
}

// WaitReady waits until the relay has accepted the first connection for its pool. If ctx is
// canceled first, the returned error contains the last failure to connect.
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

// maintainIdle keeps one idle connection to the relay open. It opens the next connection
// when the relay takes the current one for the subject, or when the current one breaks.
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
			// The relay accepted the connection, which broke afterwards. The relay may be
			// failing, so the next attempt waits.
			t.sleep(backoffMin)
		}
	}
}

// openIdle opens a connection to the relay. It returns after the relay has accepted the
// connection for its pool.
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

// forward opens a connection to the fault proxy and joins it with conn. conn is a connection
// that the relay has taken from its pool for the subject.
func (t *Tunnel) forward(conn *tls.Conn) {
	ctx, cancel := context.WithTimeout(t.ctx, joinTimeout)
	defer cancel()
	raw, err := t.options.Proxy(ctx)
	if err != nil {
		tcp.Reset(conn) // the relay then tries its next idle connection, if it has one
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

// setLastErr stores the error of a failed attempt to connect, unless Close caused the
// error.
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
