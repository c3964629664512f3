package proxy

import (
	"io"
	"net"
	"testing"
	"time"
)

// connected returns the two ends of a connection on loopback.
func connected(t *testing.T) (near *wire, far net.Conn) {
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
	conn, err := wires{listener}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close(); conn.Close() })
	return conn.(*wire), far
}

// TestCutWaits: what the history tells of is on its way before the connection
// breaks, though it is written a while later.
func TestCutWaits(t *testing.T) {
	near, far := connected(t)
	near.handing.RLock() // the history tells of an answer
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		near.cut(near, nil)
	}()
	<-time.After(10 * stillFor)
	if _, err := near.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	near.handing.RUnlock()
	<-cut
	if got, err := io.ReadAll(far); err == nil || string(got) != "answer" {
		t.Errorf("read %q, error %v; expected the answer, and then a reset", got, err)
	}
}

// TestCutLosesPatience: a subject that reads nothing keeps no connection whole.
func TestCutLosesPatience(t *testing.T) {
	near, far := connected(t)
	near.handing.RLock()
	defer near.handing.RUnlock()
	patience := make(chan time.Time)
	close(patience)
	near.cut(near, patience)
	if got, err := io.ReadAll(far); err == nil {
		t.Errorf("read %q; expected a reset", got)
	}
}
