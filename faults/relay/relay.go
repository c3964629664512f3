// Package relay is a reverse tunnel from a subject in a pod to the fault proxy in the test process.
//
// A pod cannot connect to the test process, which is behind the network of the
// container engine or on another machine. So the test process opens all connections:
//
//	in the pod                       in the test process
//	subject ─▶ Serve ◀═ mutual TLS ═ Connect ─▶ fault proxy
//
// The relay in the pod has a pool of idle connections that the test process opened.
// When the subject connects, the relay takes one connection from the pool. From then
// on it forwards all data, the end of each direction, and resets. Each connection
// of the subject uses one connection of the pool, so nothing is multiplexed.
//
// A connection of the pool starts with three messages of one byte each. All later
// bytes are exchanged between the subject and the proxy.
//
//	parked   the relay has added the connection to its pool
//	taken    the relay has taken the connection for a connection of the subject
//	joined   Connect has opened the connection to the proxy
//
// The relay neither interprets nor records the data. It accepts only the test process
// that created its certificate.
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

// The messages of the protocol.
const (
	messageParked byte = 'p'
	messageTaken  byte = 't'
	messageJoined byte = 'j'
)

const (
	// handshakeTimeout limits the time from dialing until messageParked.
	handshakeTimeout = 10 * time.Second
	// joinTimeout limits the time from messageTaken until messageJoined.
	joinTimeout = 5 * time.Second
)

// duplexConn is a connection whose two directions can be closed separately.
// TCP connections and TLS connections over TCP have this property.
type duplexConn interface {
	net.Conn
	CloseWrite() error
}

// tunnelConn is the TCP connection below a TLS connection between the two ends.
// It reports EOF as an error. A port forwarder between the two ends, such as the one
// of a container engine, may turn a reset into EOF. A regular end of the stream is a
// close_notify alert of TLS, which precedes EOF.
type tunnelConn struct{ *net.TCPConn }

func (c tunnelConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if errors.Is(err, io.EOF) {
		err = errNoCloseNotify
	}
	return n, err
}

// errNoCloseNotify means that a connection was closed without close_notify.
// It is not io.ErrUnexpectedEOF, because crypto/tls reports that one as a regular
// EOF if it occurs between two records.
var errNoCloseNotify = errors.New("the connection was closed without a TLS close_notify alert")

// newTunnelConn returns conn as a tunnelConn. It returns an error if conn is not a TCP connection.
func newTunnelConn(conn net.Conn) (tunnelConn, error) {
	raw, ok := conn.(*net.TCPConn)
	if !ok {
		return tunnelConn{}, fmt.Errorf("expected a TCP connection between the two ends of a relay, found %T", conn)
	}
	return tunnelConn{raw}, nil
}

// sendMessage sends one message.
func sendMessage(conn net.Conn, message byte) error {
	if _, err := conn.Write([]byte{message}); err != nil {
		return fmt.Errorf("sending relay message %q: %w", message, err)
	}
	return nil
}

// receiveMessage waits for the expected message. It reads no byte after the message.
func receiveMessage(conn net.Conn, expected byte) error {
	var received [1]byte
	if _, err := io.ReadFull(conn, received[:]); err != nil {
		return fmt.Errorf("waiting for relay message %q: %w", expected, err)
	}
	if received[0] != expected {
		return fmt.Errorf("received relay message %q, expected %q", received[0], expected)
	}
	return nil
}

// join forwards data between two connections until both directions are closed.
// It closes each direction when the other connection closes it. It resets both
// connections if one of them fails or if ctx is canceled.
func join(ctx context.Context, a, b duplexConn) {
	resetBoth := func() {
		tcp.Reset(a)
		tcp.Reset(b)
	}
	cancelReset := context.AfterFunc(ctx, resetBoth)
	defer cancelReset()
	var directions sync.WaitGroup
	for _, direction := range []struct{ from, to duplexConn }{{a, b}, {b, a}} {
		directions.Go(func() {
			_, err := io.Copy(direction.to, direction.from)
			if err == nil {
				err = direction.to.CloseWrite()
			}
			if err != nil {
				resetBoth()
			}
		})
	}
	directions.Wait()
	_ = a.Close() // both directions are closed, so no data is lost
	_ = b.Close()
}
