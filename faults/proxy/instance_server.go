package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/pki"
)

// instanceServer serves one replica of the subject. Its listener identifies the replica. It
// has its own connections to the API server, as the replica would have without a proxy.
type instanceServer struct {
	proxy      *Proxy
	subject    string
	server     *http.Server
	transports transportPool
}

// streamsMax is the number of concurrent requests on one connection of the subject. It
// exceeds the largest burst of a controller, so that no burst opens a second connection.
const streamsMax = 1000

// connKey is the context key of a request's connection.
type connKey struct{}

// newInstanceServer returns a server for one replica; serve starts it.
func (p *Proxy) newInstanceServer(subject string) *instanceServer {
	s := &instanceServer{proxy: p, subject: subject}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true) // every API server supports HTTP/2; an HTTP/1.1 connection carries one request at a time
	s.transports.newTransport = func() *http.Transport {
		return &http.Transport{
			Protocols:          protocols,
			DialContext:        p.dial,
			TLSClientConfig:    &tls.Config{RootCAs: p.targetCA, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
			MaxConnsPerHost:    1, // requests wait while the connection is dialed
			// The defaults of client-go: without a proxy the subject would detect a dead
			// connection after the same time.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		}
	}
	s.server = &http.Server{
		Handler:           s,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{p.certificate}, MinVersion: tls.VersionTLS12},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streamsMax},
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ErrorLog: log.New(io.Discard, "", 0), // a killed subject breaks its connections, which is expected
	}
	return s
}

// ServeHTTP handles one request.
func (s *instanceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.proxy.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.proxy.handlers.Done()
	x := &exchange{proxy: s.proxy, instance: s, writer: w, request: r}
	x.conn, _ = connOf(r.Context())
	x.serve()
}

// serve accepts connections until the server is closed.
func (s *instanceServer) serve(listener net.Listener) error {
	err := s.server.ServeTLS(subjectListener{listener}, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("fault proxy of %s: %w", s.subject, err)
}

// close breaks the connections to the subject and to the API server.
func (s *instanceServer) close() error {
	err := s.server.Close()
	s.transports.closeIdle()
	return err
}

// hopByHop are the headers that apply to a single connection.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// copyHeader copies the end-to-end headers.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !slices.Contains(hopByHop, name) {
			to[name] = values
		}
	}
	for _, named := range from.Values("Connection") {
		for name := range strings.SplitSeq(named, ",") {
			to.Del(strings.TrimSpace(name))
		}
	}
}

// newServingCertificate returns the proxy's certificate for 127.0.0.1 and the CA, in PEM,
// that subjects verify it with.
func newServingCertificate(now time.Time) (certificate tls.Certificate, ca []byte, err error) {
	authority, err := pki.NewAuthority("gauntlet fault proxy", now)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pair, err := authority.Sign(pki.Leaf{
		Name: "127.0.0.1", Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	certificate, err = tls.X509KeyPair(pair.Certificate, pair.Key)
	return certificate, authority.PEM(), err
}
