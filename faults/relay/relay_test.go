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

// exchange sends a message to the echo behind a relay while reading the answer.
func exchange(conn *net.TCPConn, message []byte) error {
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(message)
		sent <- errors.Join(err, conn.CloseWrite())
	}()
	heard, err := io.ReadAll(conn)
	if err = errors.Join(err, <-sent); err != nil {
		return err
	}
	if !bytes.Equal(heard, message) {
		return errors.New("the answer is another message")
	}
	return nil
}

func message(t *testing.T, size int) []byte {
	t.Helper()
	m := make([]byte, size)
	_, _ = rand.Read(m)
	return m
}

func TestCarries(t *testing.T) {
	for _, test := range []struct {
		name             string
		connections, len int
	}{
		{"one word", 1, 1},
		{"nothing but the end", 1, 0},
		{"many connections at once", 100, 10 << 10},
		{"a large transfer", 2, 16 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			relay := whole(t)
			var all sync.WaitGroup
			for range test.connections {
				conn, m := dial(t, relay.subject), message(t, test.len)
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

func TestAnswersAfterTheEndOfTheQuestion(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, bound), listen(t)
	handled(t, proxy, func(conn *net.TCPConn) {
		question, err := io.ReadAll(conn) // which only its end ends
		if err != nil {
			t.Errorf("the question does not end: %v", err)
		}
		_, _ = conn.Write(append([]byte("you said "), question...))
	})
	connect(t, run, relay, proxy, nil)
	conn := dial(t, relay.subject)
	if _, err := io.WriteString(conn, "this"); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); string(answer) != "you said this" || err != nil {
		t.Errorf("got %q, error %v", answer, err)
	}
}

func TestBreaksAreBreaksOnTheOtherSide(t *testing.T) {
	for _, test := range []struct {
		name        string
		subjectDoes bool // break the connection; the proxy does otherwise
		forwarded   bool // by an engine between the two ends
	}{
		{"the subject dies", true, false},
		{"the proxy resets", false, false},
		{"the subject dies, behind an engine", true, true},
		{"the proxy resets, behind an engine", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, run := pair(t, "subject-0")
			relay, proxy := serve(t, pod, bound), listen(t)
			ends := make(chan error, 1)
			handled(t, proxy, func(conn *net.TCPConn) {
				if err := hear(conn, '!'); err != nil { // so that the break comes in the middle
					t.Error(err)
				}
				if !test.subjectDoes {
					tcp.Reset(conn)
					return
				}
				_ = say(conn, '!')
				_, err := conn.Read(make([]byte, 1))
				ends <- err
			})
			if test.forwarded {
				relay.control = forwarder(t, relay.control)
			}
			connect(t, run, relay, proxy, nil)
			conn := dial(t, relay.subject)
			if err := say(conn, '!'); err != nil {
				t.Fatal(err)
			}
			if test.subjectDoes {
				if err := hear(conn, '!'); err != nil {
					t.Fatal(err)
				}
				tcp.Reset(conn)
			} else {
				_, err := conn.Read(make([]byte, 1))
				ends <- err
			}
			if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("reading on the other side: %v, want a reset", err)
			}
		})
	}
}

// expectRefusal: the relay breaks a connection without a word.
func expectRefusal(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the subject reads: %v, want a reset", err)
	}
}

func TestRefusesWithoutTestProcess(t *testing.T) {
	pod, _ := pair(t, "subject-0")
	const patience = 50 * time.Millisecond
	relay := serve(t, pod, patience)
	begun := time.Now()
	expectRefusal(t, dial(t, relay.subject))
	if waited := time.Since(begun); waited < patience {
		t.Errorf("refused after %s, before its patience of %s was over", waited, patience)
	}
}

func TestRefusesWithoutProxy(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, 100*time.Millisecond), listen(t)
	proxy.Close()
	line, _ := connect(t, run, relay, proxy, nil)
	ready(t, line)
	expectRefusal(t, dial(t, relay.subject))
}

func TestSubjectWaitsForTestProcess(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, bound), listen(t)
	handled(t, proxy, echo)
	conn := dial(t, relay.subject)
	done := make(chan error, 1)
	go func() { done <- exchange(conn, []byte("early")) }()
	connect(t, run, relay, proxy, nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestParksAnew(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, bound), listen(t)
	handled(t, proxy, echo)
	lost := make(chan error, 100)
	line, control := connect(t, run, relay, proxy, func(err error) { lost <- err })
	for range 3 {
		ready(t, line)
		if err := exchange(dial(t, relay.subject), []byte("before")); err != nil {
			t.Fatal(err)
		}
		for told, deadline := false, time.After(bound); !told; {
			control.closeAll() // those that are not parked yet break without a word
			select {
			case err := <-lost:
				told = true
				if !strings.Contains(err.Error(), "a parked connection broke") {
					t.Errorf("lost: %v", err)
				}
			case <-time.After(10 * time.Millisecond):
			case <-deadline:
				t.Fatal("nobody was told that the connections broke")
			}
		}
		if err := exchange(dial(t, relay.subject), []byte("after")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEndBreaksWhatIsUnderWay(t *testing.T) {
	for _, end := range []string{"relay", "line"} {
		t.Run(end, func(t *testing.T) {
			pod, run := pair(t, "subject-0")
			relay, proxy := serve(t, pod, bound), listen(t)
			handled(t, proxy, echo)
			line, _ := connect(t, run, relay, proxy, nil)
			conn := dial(t, relay.subject)
			if err := errors.Join(say(conn, '!'), hear(conn, '!')); err != nil {
				t.Fatal(err)
			}
			if end == "relay" {
				relay.stop()
			} else {
				line.Close()
				line.Close() // again is no harm
			}
			if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("read %d bytes, error %v, want a broken connection", n, err)
			}
		})
	}
}

func TestListenerThatFailsIsAnError(t *testing.T) {
	pod, _ := pair(t, "subject-0")
	subject, control := listen(t), listen(t)
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), Options{Subject: subject, Control: control, Identity: pod, Patience: bound})
	}()
	conn := dial(t, subject) // one that waits, and must not keep it
	control.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that the listener is closed", err)
	}
	expectRefusal(t, conn)
}

func TestSparesAreBounded(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay, proxy := serve(t, pod, bound), listen(t)
	lost := make(chan string, sparesMax)
	var lines []*Tunnel
	for range sparesMax/sparesWanted + 1 {
		line, _ := connect(t, run, relay, proxy, func(err error) {
			select {
			case lost <- err.Error():
			default:
			}
		})
		lines = append(lines, line)
	}
	for _, line := range lines {
		ready(t, line)
	}
	select {
	case <-lost:
	case <-time.After(bound):
		t.Errorf("more than %d connections are parked", sparesMax)
	}
}
