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
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/pki"
)

// instanceServer receives the requests of one replica of the subject, the controllers under test.
// As without a fault proxy, no two replicas share a listener or a connection to the API server.
type instanceServer struct {
	proxy      *Proxy
	route      *interceptor.Route
	server     *http.Server
	transports transportPool
}

// streamsMax is the maximum number of concurrent requests on one connection of the controller
// under test. A controller never sends that many requests at once, so the controller never opens a
// second connection.
const streamsMax = 1000

// connKey is the key of a value in the context of each request: the connection on which the request
// arrived.
type connKey struct{}

// newInstanceServer returns a server for one replica of the controllers under test, such as
// "subject-0". The server receives no requests before the caller calls serve.
func (p *Proxy) newInstanceServer(subject string) *instanceServer {
	s := &instanceServer{proxy: p}
	s.route = &interceptor.Route{Subject: subject, Target: p.target, Upstream: &s.transports, Stopping: p.stopping}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true) // an HTTP/1.1 connection can send only one request at a time
	s.transports.newTransport = func() *http.Transport {
		return &http.Transport{
			Protocols:          protocols,
			DialContext:        p.dial,
			TLSClientConfig:    &tls.Config{RootCAs: p.targetCA, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
			MaxConnsPerHost:    1, // while a connection is being opened, further requests wait for it
			// These are client-go's defaults, so the proxy detects a dead connection as fast as
			// the subject would.
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
		ErrorLog: log.New(io.Discard, "", 0), // a killed subject breaks its connections, which is no error
	}
	return s
}

// ServeHTTP passes one request to the interceptor, which forwards the request and its response.
// It implements http.Handler.
func (s *instanceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.proxy.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.proxy.handlers.Done()
	s.proxy.interceptor.Serve(s.route, connOf(r.Context()), w, r)
}

// serve accepts the replica's connections until the method close is called. It returns an error if
// the listener fails earlier.
func (s *instanceServer) serve(listener net.Listener) error {
	err := s.server.ServeTLS(subjectListener{listener}, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("fault proxy: serving replica %s: %w", s.route.Subject, err)
}

// close closes the listener and breaks the connections to the controller under test. It also
// closes the connections to the API server on which no request is in flight.
func (s *instanceServer) close() error {
	err := s.server.Close()
	s.transports.closeIdle()
	return err
}

// newServingCertificate creates the fault proxy's certificate for 127.0.0.1. The result ca is the
// authority's certificate in PEM, with which the controller under test verifies the proxy.
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
