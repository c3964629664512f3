package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/internal/tcp"
)

// exchange sends a message through a relay to an echo server. It returns an error unless the
// answer is equal to the message.
func exchange(conn *net.TCPConn, message []byte) error {
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(message)
		sent <- errors.Join(err, conn.CloseWrite())
	}()
	received, err := io.ReadAll(conn)
	if err = errors.Join(err, <-sent); err != nil {
		return err
	}
	if !bytes.Equal(received, message) {
		return errors.New("the answer of the echo server differs from the message")
	}
	return nil
}

// randomMessage returns a message of random bytes with the given size.
func randomMessage(t *testing.T, size int) []byte {
	t.Helper()
	m := make([]byte, size)
	_, _ = rand.Read(m)
	return m
}

func TestForwardsData(t *testing.T) {
	for _, test := range []struct {
		name             string
		connections, len int
	}{
		{"one byte", 1, 1},
		{"no data", 1, 0},
		{"many connections at once", 100, 10 << 10},
		{"a large transfer", 2, 16 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			relay := serveEcho(t)
			var all sync.WaitGroup
			for range test.connections {
				conn, m := dial(t, relay.subject), randomMessage(t, test.len)
				all.Go(func() {
					if err := exchange(conn, m); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestForwardsEachDirectionSeparately(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, testTimeout), listen(t)
	handleConns(t, proxy, func(conn *net.TCPConn) {
		request, err := io.ReadAll(conn) // ReadAll returns when the subject closes its direction of the connection
		if err != nil {
			t.Errorf("reading the request until EOF: %v", err)
		}
		_, _ = conn.Write(append([]byte("answer to "), request...))
	})
	connect(t, run, relay, proxy, nil)
	conn := dial(t, relay.subject)
	if _, err := io.WriteString(conn, "this"); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); string(answer) != "answer to this" || err != nil {
		t.Errorf("received %q (error %v), want %q", answer, err, "answer to this")
	}
}

func TestForwardsResets(t *testing.T) {
	for _, test := range []struct {
		name          string
		subjectResets bool // true if the controller under test resets the connection; false if the fault proxy does
		forwarded     bool // true if a port forwarder is between the relay and the gauntlet process
	}{
		{"the subject resets", true, false},
		{"the proxy resets", false, false},
		{"the subject resets, with a port forwarder", true, true},
		{"the proxy resets, with a port forwarder", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, run := pair(t, "subject-0")
			relay, proxy := serve(t, pod, testTimeout), listen(t)
			ends := make(chan error, 1)
			handleConns(t, proxy, func(conn *net.TCPConn) {
				if err := receiveMessage(conn, '!'); err != nil { // waits for data, so that the reset comes after some data
					t.Error(err)
				}
				if !test.subjectResets {
					tcp.Reset(conn)
					return
				}
				_ = sendMessage(conn, '!')
				_, err := conn.Read(make([]byte, 1))
				ends <- err
			})
			if test.forwarded {
				relay.control = portForwarder(t, relay.control)
			}
			connect(t, run, relay, proxy, nil)
			conn := dial(t, relay.subject)
			if err := sendMessage(conn, '!'); err != nil {
				t.Fatal(err)
			}
			if test.subjectResets {
				if err := receiveMessage(conn, '!'); err != nil {
					t.Fatal(err)
				}
				tcp.Reset(conn)
			} else {
				_, err := conn.Read(make([]byte, 1))
				ends <- err
			}
			if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("reading at the other end: error %v, want %v", err, syscall.ECONNRESET)
			}
		})
	}
}

// expectReset checks that the relay resets a connection of the controller under test without
// sending data on it.
func expectReset(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reading as the subject: error %v, want %v", err, syscall.ECONNRESET)
	}
}

func TestResetsSubjectWithoutTestProcess(t *testing.T) {
	pod, _ := pair(t, "subject-0")
	const patience = 50 * time.Millisecond
	relay := serve(t, pod, patience)
	started := time.Now()
	expectReset(t, dial(t, relay.subject))
	if waited := time.Since(started); waited < patience {
		t.Errorf("connection was reset after %s, want not before Patience of %s", waited, patience)
	}
}

func TestResetsSubjectWithoutProxy(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, 100*time.Millisecond), listen(t)
	proxy.Close()
	tunnel, _ := connect(t, run, relay, proxy, nil)
	waitReady(t, tunnel)
	expectReset(t, dial(t, relay.subject))
}

func TestSubjectWaitsForTestProcess(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, testTimeout), listen(t)
	handleConns(t, proxy, echo)
	conn := dial(t, relay.subject)
	done := make(chan error, 1)
	go func() { done <- exchange(conn, []byte("early")) }()
	connect(t, run, relay, proxy, nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReplacesBrokenIdleConnections(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, testTimeout), listen(t)
	handleConns(t, proxy, echo)
	lost := make(chan error, 100)
	tunnel, control := connect(t, run, relay, proxy, func(err error) { lost <- err })
	for range 3 {
		waitReady(t, tunnel)
		if err := exchange(dial(t, relay.subject), []byte("before")); err != nil {
			t.Fatal(err)
		}
		for reported, deadline := false, time.After(testTimeout); !reported; {
			// The Tunnel does not call OnLost for a connection that the relay has not yet added
			// to its pool. The test therefore breaks connections repeatedly.
			control.closeAll()
			select {
			case err := <-lost:
				reported = true
				if !strings.Contains(err.Error(), "an idle connection to the relay in the pod of subject-0 broke") {
					t.Errorf("OnLost was called with error %v", err)
				}
			case <-time.After(10 * time.Millisecond):
			case <-deadline:
				t.Fatal("OnLost was not called after the connections broke")
			}
		}
		if err := exchange(dial(t, relay.subject), []byte("after")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStoppingEitherEndBreaksConnections(t *testing.T) {
	for _, stopped := range []string{"relay", "tunnel"} {
		t.Run(stopped, func(t *testing.T) {
			pod, run := pair(t, "subject-0")
			relay, proxy := serve(t, pod, testTimeout), listen(t)
			handleConns(t, proxy, echo)
			tunnel, _ := connect(t, run, relay, proxy, nil)
			conn := dial(t, relay.subject)
			if err := errors.Join(sendMessage(conn, '!'), receiveMessage(conn, '!')); err != nil {
				t.Fatal(err)
			}
			if stopped == "relay" {
				relay.stop()
			} else {
				tunnel.Close()
				tunnel.Close() // a second call has no effect
			}
			if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Read() = %d bytes, error %v; want the error of a broken connection", n, err)
			}
		})
	}
}

func TestServeReturnsErrorOfListener(t *testing.T) {
	pod, _ := pair(t, "subject-0")
	subject, control := listen(t), listen(t)
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), Options{Subject: subject, Control: control, Identity: pod, Patience: testTimeout})
	}()
	conn := dial(t, subject) // this connection waits for an idle connection, but must not delay the end of Serve
	control.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve() = %v, want %v", err, net.ErrClosed)
	}
	expectReset(t, conn)
}

func TestPoolIsLimited(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, testTimeout), listen(t)
	lost := make(chan string, idleMax)
	var tunnels []*Tunnel
	for range idleMax/idleWanted + 1 {
		tunnel, _ := connect(t, run, relay, proxy, func(err error) {
			select {
			case lost <- err.Error():
			default:
			}
		})
		tunnels = append(tunnels, tunnel)
	}
	for _, tunnel := range tunnels {
		waitReady(t, tunnel)
	}
	select {
	case <-lost:
	case <-time.After(testTimeout):
		t.Errorf("the relay accepted more than %d idle connections", idleMax)
	}
}
