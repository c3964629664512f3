// Package tcp resets TCP connections, for faults that break connections.
package tcp

import (
	"crypto/tls"
	"net"
)

// Reset closes a connection with a TCP reset, as the kernel does when a process is killed. Data
// that is still in flight is lost.
//
// A TLS connection sends no close_notify alert. A connection that does not use TCP is closed
// normally.
func Reset(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // closing the TLS connection itself would send close_notify
	}
	if lingering, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = lingering.SetLinger(0) // an error means that the connection is already closed
	}
	_ = conn.Close()
}
