package proxy

import (
	"io"
	"net"
	"testing"
	"time"
)

// connectedPair returns both ends of a TCP connection on loopback.
func connectedPair(t *testing.T) (near *subjectConn, far net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	far, err = net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := subjectListener{listener}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close(); conn.Close() })
	return conn.(*subjectConn), far
}

// TestResetWaitsForWrites checks that resetAfterWrites waits until a recorded response is
// written.
func TestResetWaitsForWrites(t *testing.T) {
	near, far := connectedPair(t)
	near.delivering.RLock() // the proxy holds this lock while it records and writes a response
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		near.resetAfterWrites(near, nil)
	}()
	<-time.After(10 * writeQuietPeriod)
	if _, err := near.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	near.delivering.RUnlock()
	<-cut
	if got, err := io.ReadAll(far); err == nil || string(got) != "answer" {
		t.Errorf("read %q, error %v; expected the response, and then a reset", got, err)
	}
}

// TestResetIsBounded checks that resetAfterWrites resets the connection after the timeout, even if
// the controller under test does not read.
func TestResetIsBounded(t *testing.T) {
	near, far := connectedPair(t)
	near.delivering.RLock()
	defer near.delivering.RUnlock()
	timeout := make(chan time.Time)
	close(timeout)
	near.resetAfterWrites(near, timeout)
	if got, err := io.ReadAll(far); err == nil {
		t.Errorf("read %q; expected a reset", got)
	}
}
