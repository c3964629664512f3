package manager

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	// This import registers the metrics of work queues, requests and leader election.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
)

// healthCheck is one health check of the HTTP server. Its function run returns an error if the
// check fails.
type healthCheck struct {
	name string
	run  func(*http.Request) error
}

// newHandler returns the HTTP handler for health checks and metrics:
//
//	/livez, /healthz        fails if the leader has not renewed its lease for too long
//	/readyz                 also fails while the caches of the leader are not synced
//	/metrics                metrics in the Prometheus text format
//	/debug/pprof/           profiles of CPU time, memory, goroutines and locks, as in net/http/pprof
//
// The handler serves only the given paths, and answers all other requests with status 403. It
// does not authenticate clients, because the responses contain no secrets.
func newHandler(live, ready []healthCheck, paths []string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", healthHandler(live))
	mux.Handle("GET /healthz", healthHandler(live))
	mux.Handle("GET /readyz", healthHandler(ready))
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !allowed(paths, request.URL.Path) {
			http.Error(w, "the path of this URL is not in --authorization-always-allow-paths", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, request)
	})
}

// allowed reports whether clients may request the URL path. The argument paths lists the allowed
// paths. An element that ends in "*" allows every path with this prefix.
func allowed(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return p == path || open && strings.HasPrefix(path, prefix)
	})
}

// healthHandler returns a handler that runs the given health checks. The handler answers with
// status 500 if a check fails.
func healthHandler(checks []healthCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var report strings.Builder
		status := http.StatusOK
		for _, c := range checks {
			if err := c.run(request); err != nil {
				status = http.StatusInternalServerError
				fmt.Fprintf(&report, "[-]%s failed: %v\n", c.name, err)
			} else {
				fmt.Fprintf(&report, "[+]%s ok\n", c.name)
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		if status == http.StatusOK && !request.URL.Query().Has("verbose") {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprint(w, report.String())
	})
}

// serve starts an HTTPS server on the address in options. The result stop stops the server. If the
// server ends before the caller calls stop, serve passes the error to the callback failed.
func serve(options ServingOptions, handler http.Handler, failed func(error)) (stop func(), err error) {
	certificate, err := options.certificate()
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(options.BindAddress, strconv.Itoa(options.SecurePort))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening the port for health checks and metrics (--bind-address=%s --secure-port=%d): %w", options.BindAddress, options.SecurePort, err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("serving health checks and metrics on %s: %w", address, err))
		}
	}()
	return func() {
		_ = server.Close() // also closes open connections
		<-ended
	}, nil
}

// certificate returns the serving certificate: from CertFile and KeyFile, or a self-signed one.
func (o ServingOptions) certificate() (tls.Certificate, error) {
	certFile, keyFile := o.CertFile, o.KeyFile
	if certFile == "" && o.CertDir == "" {
		certPEM, keyPEM, err := selfSigned(o.BindAddress)
		if err != nil {
			return tls.Certificate{}, err
		}
		return tls.X509KeyPair(certPEM, keyPEM)
	}
	if certFile == "" {
		certFile, keyFile = filepath.Join(o.CertDir, Name+".crt"), filepath.Join(o.CertDir, Name+".key")
		if err := ensureSelfSigned(o.BindAddress, certFile, keyFile); err != nil {
			return tls.Certificate{}, fmt.Errorf("creating a self-signed certificate in --cert-dir=%s: %w", o.CertDir, err)
		}
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the serving certificate %s and its key %s: %w", certFile, keyFile, err)
	}
	return certificate, nil
}

// ensureSelfSigned creates a self-signed certificate and its key, unless both files exist.
func ensureSelfSigned(address, certFile, keyFile string) error {
	_, certErr := os.Stat(certFile)
	_, keyErr := os.Stat(keyFile)
	if certErr == nil && keyErr == nil {
		return nil
	}
	if err := errors.Join(certErr, keyErr); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	certPEM, keyPEM, err := selfSigned(address)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(certFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(certFile, certPEM, 0o644)
}

// selfSigned creates a self-signed certificate for an IP address, for localhost and for the
// loopback addresses. It returns the certificate and its private key, PEM-encoded. The certificate
// is valid for one year.
func selfSigned(address string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating the private key of the serving certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, nil, fmt.Errorf("generating the serial number of the serving certificate: %w", err)
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: Name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.ParseIP(address), net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the serving certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the private key of the serving certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}
