// Package relay connects a subject in a pod to the fault proxy in the gauntlet process.
//
// The subject is the controllers under test. The gauntlet process is the process that runs the
// fault proxy. The relay is another process, a container in the subject's pod. A pod cannot
// connect to the gauntlet process, because a container network or another machine is in
// between. The gauntlet process therefore opens all connections, as for a reverse tunnel:
//
//	in the pod                       in the gauntlet process
//	subject ─▶ Serve ◀═ mutual TLS ═ Connect ─▶ fault proxy
//
// The relay has a pool of idle connections that the gauntlet process has opened. When the
// subject opens a connection to the relay, the relay takes a connection from the pool. The relay
// joins the two connections. It forwards all data, the end of the data in each direction, and
// TCP resets. Each connection of the subject uses its own connection from the pool.
//
// The relay and the gauntlet process exchange three messages of one byte each on a connection of
// the pool. All bytes after the third message are data of the subject and the proxy.
//
//	parked   the relay has accepted the connection and adds it to its pool
//	taken    the relay has taken the connection for a connection of the subject
//	joined   Connect has opened the connection to the proxy
//
// The relay neither interprets nor records the data. It accepts connections only from the
// gauntlet process that created its certificate.
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

// These are the messages between the relay in the tested program's pod and the gauntlet process;
// see the package comment.
const (
	messageParked byte = 'p' // sent by the relay: the relay adds the connection to its pool
	messageTaken  byte = 't' // sent by the relay: connect this connection to the fault proxy
	messageJoined byte = 'j' // sent by the gauntlet process: the connection to the fault proxy is open
)

const (
	// handshakeTimeout is the maximum time to open a connection and to add it to the relay's pool
	// of idle connections. It is measured from the dial until messageParked has arrived.
	handshakeTimeout = 10 * time.Second
	// joinTimeout is the maximum time to join an idle connection of the relay's pool with the fault
	// proxy. It is measured from messageTaken until messageJoined has arrived.
	joinTimeout = 5 * time.Second
)

// duplexConn is a connection whose CloseWrite closes one direction while the other direction
// stays open. TCP connections, and TLS connections over TCP, implement it.
type duplexConn interface {
	net.Conn
	CloseWrite() error
}

// tunnelConn is the TCP connection that carries TLS between the relay in the pod and the
// gauntlet process. Its Read returns errNoCloseNotify in place of io.EOF, because EOF means that
// the connection broke.
//
// Before a normal end, the peer sends TLS's close_notify alert, after which TLS does not read up
// to EOF. A TCP reset may arrive as EOF, because a port forwarder, such as that of a container
// engine, may turn the reset into EOF.
type tunnelConn struct{ *net.TCPConn }

// Read reads from the TCP connection. It returns errNoCloseNotify in place of io.EOF.
func (c tunnelConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if errors.Is(err, io.EOF) {
		err = errNoCloseNotify
	}
	return n, err
}

// errNoCloseNotify means that the peer closed the TCP connection without sending TLS's
// close_notify alert. It exists because crypto/tls would turn io.ErrUnexpectedEOF between two TLS
// records into io.EOF, which looks like a normal end.
var errNoCloseNotify = errors.New("the connection between relay and gauntlet process was closed without a TLS close_notify alert")

// newTunnelConn wraps a TCP connection in a tunnelConn. It returns an error if conn is not
// a TCP connection.
func newTunnelConn(conn net.Conn) (tunnelConn, error) {
	raw, ok := conn.(*net.TCPConn)
	if !ok {
		return tunnelConn{}, fmt.Errorf("the connection between relay and gauntlet process has the type %T; expected a TCP connection", conn)
	}
	return tunnelConn{raw}, nil
}

// messageName returns the name of a message of the relay protocol, such as "parked". For any
// other byte, it returns the quoted byte.
func messageName(message byte) string {
	switch message {
	case messageParked:
		return "parked"
	case messageTaken:
		return "taken"
	case messageJoined:
		return "joined"
	}
	return fmt.Sprintf("%q", message)
}

// sendMessage sends one message of the relay protocol, such as messageTaken.
func sendMessage(conn net.Conn, message byte) error {
	if _, err := conn.Write([]byte{message}); err != nil {
		return fmt.Errorf("sending relay message %s: %w", messageName(message), err)
	}
	return nil
}

// receiveMessage waits for one message of the relay protocol. It returns an error if the message
// is not the expected one. It reads no byte after the message.
func receiveMessage(conn net.Conn, expected byte) error {
	var received [1]byte
	if _, err := io.ReadFull(conn, received[:]); err != nil {
		return fmt.Errorf("waiting for relay message %s: %w", messageName(expected), err)
	}
	if received[0] != expected {
		return fmt.Errorf("received relay message %s, expected %s", messageName(received[0]), messageName(expected))
	}
	return nil
}

// join forwards data between the connections a and b until both directions are closed. When one
// connection ends its direction, join closes this direction on the other connection. If a
// connection fails or ctx is canceled, join resets both.
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
