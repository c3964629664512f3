// Package tcp resets TCP connections. Faults use it to break connections.
package tcp

import (
	"crypto/tls"
	"net"
)

// Reset closes a connection with a TCP reset (RST), as the kernel does when a process is killed.
// Data that is still in flight is lost.
//
// For a TLS connection, Reset does not send a close_notify alert. If the connection does not use
// TCP, Reset calls its Close method instead.
func Reset(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // closing the TLS connection itself would send close_notify
	}
	if lingering, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = lingering.SetLinger(0) // an error means that the connection is already closed
	}
	_ = conn.Close()
}
