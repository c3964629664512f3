// Package tcp contains the operations of faults on TCP connections.
package tcp

import (
	"crypto/tls"
	"net"
)

// Reset closes a connection with a TCP reset, as the kernel does for a process that died.
// Data in flight is lost, and a TLS connection gets no close_notify alert. A
// connection that is not TCP is closed normally.
func Reset(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // closing the TLS connection itself would send close_notify
	}
	if lingering, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = lingering.SetLinger(0) // an error means that the connection is already closed
	}
	_ = conn.Close()
}
