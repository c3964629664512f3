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

// instanceServer is one subject instance's way in: a listener, by which its requests are
// known, and connections of its own to the API server, as it would have without
// a proxy.
type instanceServer struct {
	proxy      *Proxy
	subject    string
	server     *http.Server
	transports transportPool
}

// streamsMax is how many requests a subject may have under way on a connection:
// enough for the largest burst of a controller, so that it does not dial more.
const streamsMax = 1000

// connKey finds a request's connection in its context.
type connKey struct{}

// newInstanceServer makes what serves a subject instance, not yet serving.
func (p *Proxy) newInstanceServer(subject string) *instanceServer {
	g := &instanceServer{proxy: p, subject: subject}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true) // every API server speaks it; a lane of HTTP/1.1 would take one request at a time
	g.transports.newTransport = func() *http.Transport {
		return &http.Transport{
			Protocols:          protocols,
			DialContext:        p.dial,
			TLSClientConfig:    &tls.Config{RootCAs: p.targetCA, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
			MaxConnsPerHost:    1, // a lane: who comes while it is dialled waits for it
			// What client-go uses: without a proxy, the subject itself would notice a
			// dead connection that soon.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		}
	}
	g.server = &http.Server{
		Handler:           g,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{p.certificate}, MinVersion: tls.VersionTLS12},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streamsMax},
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ErrorLog: log.New(io.Discard, "", 0), // a killed subject breaks its connections; that is no news
	}
	return g
}

// ServeHTTP is the life of a request.
func (g *instanceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.proxy.enter() {
		panic(http.ErrAbortHandler)
	}
	defer g.proxy.handlers.Done()
	x := &exchange{proxy: g.proxy, instance: g, writer: w, request: r}
	x.conn, _ = connOf(r.Context())
	x.serve()
}

// serve accepts connections until the server is closed.
func (g *instanceServer) serve(listener net.Listener) error {
	err := g.server.ServeTLS(subjectListener{listener}, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("fault proxy of %s: %w", g.subject, err)
}

// close breaks all connections, on both sides.
func (g *instanceServer) close() error {
	err := g.server.Close()
	g.transports.closeIdle()
	return err
}

// hopByHop are the header fields that concern one connection only.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// copyHeader copies what concerns the two ends.
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

// newServingCertificate makes what the proxy shows on loopback, and in PEM the authority by
// which subjects know it.
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
