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

// instanceServer receives the requests of one replica of the subject. Each replica has a
// listener and connections to the API server that no other replica uses, as without a
// proxy.
type instanceServer struct {
	proxy      *Proxy
	route      *interceptor.Route
	server     *http.Server
	transports transportPool
}

// streamsMax is the maximum number of concurrent requests on one connection of the subject. It
// is larger than the largest burst of requests of a controller, so a burst never makes the
// subject open a second connection.
const streamsMax = 1000

// connKey is the key of a request's context for the connection on which the request arrived.
type connKey struct{}

// newInstanceServer returns a server for one replica. The caller starts it with serve.
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
			MaxConnsPerHost:    1, // while the connection is being dialed, further requests wait for it
			// These are the defaults of client-go, so that the proxy detects a dead
			// connection after the same time as the subject would.
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

// ServeHTTP forwards one request and its response. It implements http.Handler.
func (s *instanceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.proxy.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.proxy.handlers.Done()
	s.proxy.interceptor.Serve(s.route, connOf(r.Context()), w, r)
}

// serve accepts the connections of the replica until close is called.
func (s *instanceServer) serve(listener net.Listener) error {
	err := s.server.ServeTLS(subjectListener{listener}, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("fault proxy: serving replica %s: %w", s.route.Subject, err)
}

// close closes the listener and breaks the connections to the subject. It also closes the
// connections to the API server on which no request is in flight.
func (s *instanceServer) close() error {
	err := s.server.Close()
	s.transports.closeIdle()
	return err
}

// newServingCertificate creates the proxy's certificate for 127.0.0.1. It also returns the
// certificate of the signing authority in PEM, with which the subject verifies the proxy.
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
