package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is the deadline of the connections in these tests. It is much longer than any
// operation needs.
const testTimeout = 20 * time.Second

// listen opens a listener on loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// dial opens a connection to a listener, with testTimeout as its deadline.
func dial(t *testing.T, to net.Listener) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// pair creates the identities of the relay in the pod and of the gauntlet process (run).
func pair(t *testing.T, name string) (pod, run Identity) {
	t.Helper()
	pod, run, err := NewPair(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pod, run
}

// relayEnd is the pod's side of a relay, with its two listeners. Serve runs it.
type relayEnd struct {
	subject, control net.Listener
	stop             func() // stops Serve and waits until it returns
}

// serve runs the pod's side of a relay until the test ends.
func serve(t *testing.T, identity Identity, patience time.Duration) relayEnd {
	t.Helper()
	r := relayEnd{subject: listen(t), control: listen(t)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, Options{Subject: r.subject, Control: r.control, Identity: identity, Patience: patience, Log: t.Logf})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v, want no error", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// dialer opens connections to a listener, and stores them so that closeAll can close them.
type dialer struct {
	to net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.to.Addr().String())
	if err == nil {
		d.mu.Lock()
		d.conns = append(d.conns, conn)
		d.mu.Unlock()
	}
	return conn, err
}

// closeAll closes all connections that the dialer has opened so far.
func (d *dialer) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns = nil
}

// connect starts a Tunnel and closes it when the test ends.
func connect(t *testing.T, identity Identity, relay relayEnd, proxy net.Listener, lost func(error)) (*Tunnel, *dialer) {
	t.Helper()
	control := &dialer{to: relay.control}
	tunnel, err := Connect(t.Context(), TunnelOptions{
		Name: "subject-0", Identity: identity, Relay: control.dial, Proxy: (&dialer{to: proxy}).dial, OnLost: lost,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tunnel.Close)
	return tunnel, control
}

// handleConns calls a handler for every connection that a listener accepts. At the end of the
// test, it waits until all handlers have returned.
func handleConns(t *testing.T, listener net.Listener, handle func(*net.TCPConn)) {
	t.Helper()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(testTimeout))
				handle(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
}

// echo sends all received data back, and then closes its direction of the connection.
func echo(conn *net.TCPConn) {
	_, _ = io.Copy(conn, conn)
	_ = conn.CloseWrite()
}

// waitReady waits until the relay has added a Tunnel's first connection to its pool.
func waitReady(t *testing.T, tunnel *Tunnel) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), testTimeout, errors.New("not ready in time"))
	defer cancel()
	if err := tunnel.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// serveEcho starts a relay and a Tunnel, with an echo server in place of the fault proxy.
func serveEcho(t *testing.T) relayEnd {
	t.Helper()
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, testTimeout), listen(t)
	handleConns(t, proxy, echo)
	tunnel, _ := connect(t, run, relay, proxy, nil)
	waitReady(t, tunnel)
	return relay
}

// portForwarder forwards connections to a listener, as a container engine's port forwarder does.
// If the listener resets a connection or cannot be reached, portForwarder closes the client's
// connection normally, without a reset.
func portForwarder(t *testing.T, to net.Listener) net.Listener {
	t.Helper()
	forwarded := listen(t)
	handleConns(t, forwarded, func(client *net.TCPConn) {
		dialed, err := net.Dial("tcp", to.Addr().String())
		if err != nil {
			return // the error may mean that the test has ended
		}
		server := dialed.(*net.TCPConn)
		var directions sync.WaitGroup
		for _, direction := range []struct{ from, to *net.TCPConn }{{client, server}, {server, client}} {
			directions.Go(func() {
				_, _ = io.Copy(direction.to, direction.from)
				_ = direction.to.CloseWrite()
			})
		}
		directions.Wait()
		server.Close()
	})
	return forwarded
}
