// Package relay carries the connections of a subject in a pod to the fault proxy
// in the test process, which nothing in a pod can reach: the test process is
// behind the container engine's network, or on another machine.
//
//	in the pod                       of the test process
//	subject ─▶ Serve ◀═ mutual TLS ═ Connect ─▶ fault proxy
//
// The test process does all the dialling. It keeps a few connections parked at
// the relay; when the subject connects, the relay takes one of them, and from
// then on what is said on one side is said on the other, ends and resets
// included. One connection of the subject is one connection to the proxy: there
// is nothing to multiplex. On a parked connection,
//
//	the relay says   parked   when it has taken it in,
//	the relay says   taken    when the subject has connected,
//	Connect says     joined   when the proxy has,
//
// each a single byte, and everything after it is the subject's and the proxy's.
//
// The relay decides nothing, reads nothing and records nothing; it only lets
// nobody in but the test process that made its certificate.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/internal/tcp"
)

// The words of the protocol.
const (
	wordParked byte = 'p'
	wordTaken  byte = 't'
	wordJoined byte = 'j'
)

const (
	// handshakeMax bounds what the two ends have to say to each other before a
	// connection is parked, and joinMax the answer to wordTaken.
	handshakeMax = 10 * time.Second
	joinMax      = 5 * time.Second
)

// duplex is a connection of which each direction can end by itself. TCP is, and
// so is TLS on it.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// wire is a connection under TLS whose end, when TLS has not said that it is one,
// is a break: what stands between the two ends, an engine that forwards ports for
// one, may make the first of the second.
type wire struct{ *net.TCPConn }

func (w wire) Read(p []byte) (int, error) {
	n, err := w.TCPConn.Read(p)
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	return n, err
}

// errCut is not io.ErrUnexpectedEOF, which TLS takes for an end between records.
var errCut = errors.New("the connection was cut off")

// overTLS is a connection as TLS is to have it.
func overTLS(conn net.Conn) (wire, error) {
	raw, ok := conn.(*net.TCPConn)
	if !ok {
		return wire{}, fmt.Errorf("expected a TCP connection between the ends of a relay, found a %T", conn)
	}
	return wire{raw}, nil
}

// say sends one word.
func say(conn net.Conn, word byte) error {
	if _, err := conn.Write([]byte{word}); err != nil {
		return fmt.Errorf("saying %q to the other end: %w", word, err)
	}
	return nil
}

// hear waits for one word, and takes no other. It reads no further.
func hear(conn net.Conn, word byte) error {
	var heard [1]byte
	if _, err := io.ReadFull(conn, heard[:]); err != nil {
		return fmt.Errorf("waiting for %q from the other end: %w", word, err)
	}
	if heard[0] != word {
		return fmt.Errorf("the other end said %q: expected %q", heard[0], word)
	}
	return nil
}

// join makes two connections one, until both directions have ended. The end of a
// direction is passed on as its end; a break of either connection, or the end of
// ctx, breaks both.
func join(ctx context.Context, a, b duplex) {
	breakBoth := func() {
		tcp.Reset(a)
		tcp.Reset(b)
	}
	unwatch := context.AfterFunc(ctx, breakBoth)
	defer unwatch()
	var directions sync.WaitGroup
	for _, way := range []struct{ from, to duplex }{{a, b}, {b, a}} {
		directions.Go(func() {
			_, err := io.Copy(way.to, way.from)
			if err == nil {
				err = way.to.CloseWrite()
			}
			if err != nil {
				breakBoth()
			}
		})
	}
	directions.Wait()
	_ = a.Close() // both have ended: nothing is lost by it
	_ = b.Close()
}
