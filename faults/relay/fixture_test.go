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

// bound is far above what anything here takes.
const bound = 20 * time.Second

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

// dial connects to a listener, with a deadline for whatever follows.
func dial(t *testing.T, to net.Listener) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(bound)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// pair makes the identities of both ends.
func pair(t *testing.T, name string) (pod, run Identity) {
	t.Helper()
	pod, run, err := NewPair(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pod, run
}

// relayEnd is a relay that serves.
type relayEnd struct {
	subject, control net.Listener
	stop             func() // and waits until it has
}

// serve runs a relay until the test ends.
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
			t.Errorf("the relay ended with %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// dials makes the dialler of a listener, and keeps what it dials.
type dials struct {
	to net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

func (d *dials) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.to.Addr().String())
	if err == nil {
		d.mu.Lock()
		d.conns = append(d.conns, conn)
		d.mu.Unlock()
	}
	return conn, err
}

// closeAll breaks everything that was dialled so far.
func (d *dials) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns = nil
}

// connect opens a line until the test ends.
func connect(t *testing.T, identity Identity, relay relayEnd, proxy net.Listener, lost func(error)) (*Tunnel, *dials) {
	t.Helper()
	control := &dials{to: relay.control}
	line, err := Connect(t.Context(), TunnelOptions{
		Name: "subject-0", Identity: identity, Relay: control.dial, Proxy: (&dials{to: proxy}).dial, OnLost: lost,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.Close)
	return line, control
}

// handled runs a handler for every connection of a listener, and waits for all of
// them when the test ends.
func handled(t *testing.T, listener net.Listener, handle func(*net.TCPConn)) {
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
				_ = conn.SetDeadline(time.Now().Add(bound))
				handle(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
}

// echo says back what it hears, up to the end of it.
func echo(conn *net.TCPConn) {
	_, _ = io.Copy(conn, conn)
	_ = conn.CloseWrite()
}

func ready(t *testing.T, line *Tunnel) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), bound, errors.New("not ready in time"))
	defer cancel()
	if err := line.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// whole is a relay, a line and an echo behind it, ready.
func whole(t *testing.T) relayEnd {
	t.Helper()
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, bound), listen(t)
	handled(t, proxy, echo)
	line, _ := connect(t, run, relay, proxy, nil)
	ready(t, line)
	return relay
}

// forwarder stands before a listener as a container engine does before a port: it
// ends what breaks, and what nobody takes at the other end.
func forwarder(t *testing.T, to net.Listener) net.Listener {
	t.Helper()
	front := listen(t)
	handled(t, front, func(conn *net.TCPConn) {
		dialled, err := net.Dial("tcp", to.Addr().String())
		if err != nil {
			return // such as when the test is over
		}
		back := dialled.(*net.TCPConn)
		var directions sync.WaitGroup
		for _, way := range []struct{ from, to *net.TCPConn }{{conn, back}, {back, conn}} {
			directions.Go(func() {
				_, _ = io.Copy(way.to, way.from)
				_ = way.to.CloseWrite()
			})
		}
		directions.Wait()
		back.Close()
	})
	return front
}
