// Package tcp has what faults do to connections below the protocols on them.
package tcp

import (
	"crypto/tls"
	"net"
)

// Reset breaks a connection as a process that dies breaks it: with a reset, and
// whatever is under way on it lost. One under TLS gets no farewell. Where the
// connection knows no reset, it is closed.
func Reset(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // else closing it would say goodbye
	}
	if lingering, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = lingering.SetLinger(0) // a connection that is gone already needs no reset
	}
	_ = conn.Close()
}
