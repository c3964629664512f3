package subject

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/pki"
)

// These are the HTTP paths that a replica's debug endpoint serves; see [Subject.Fetch].
const (
	// MetricsPath is the path of the metrics in the Prometheus text format.
	MetricsPath = "/metrics"
	// GoroutinesPath is the path of the stacks of all goroutines, as text.
	GoroutinesPath = "/debug/pprof/goroutine?debug=2"
)

// servingPort is the TCP port of each replica's debug endpoint. All replicas can use the same port,
// because each replica has its own loopback address.
//
// The port is below the ephemeral port range of Linux, so no client connection uses it.
const servingPort = 20257

// Serving describes the HTTPS debug endpoint of a replica.
//
// Each replica listens on its own random loopback address. Other programs are unlikely to use this
// address, so clients do not confuse the replica with another process.
type Serving struct {
	Address           string // IP address 127.x.y.z on which the replica listens
	CertFile, KeyFile string // paths of the serving certificate, which is valid only for Address

	client *http.Client // client that trusts only the certificate in CertFile
}

// flags returns the command line flags that make a replica serve its debug endpoint. For a nil
// Serving, the flags disable the endpoint.
//
// The replica answers requests for metrics and goroutine stacks without a SubjectAccessReview.
// Every local process may therefore read them. Metrics and stacks contain no secrets.
func (s *Serving) flags() []string {
	if s == nil {
		return []string{"--secure-port=0"}
	}
	return []string{
		"--bind-address=" + s.Address,
		"--secure-port=" + strconv.Itoa(servingPort),
		"--tls-cert-file=" + s.CertFile,
		"--tls-private-key-file=" + s.KeyFile,
		"--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics,/debug/pprof/*",
	}
}

// newServing chooses a loopback address for a replica's debug endpoint. It writes a serving
// certificate and its key to the directory dir.
func newServing(dir, replica string) (*Serving, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Serving{
		Address:  address.String(),
		CertFile: filepath.Join(dir, replica+".serving.crt"), KeyFile: filepath.Join(dir, replica+".serving.key"),
	}
	authority, err := pki.NewAuthority("gauntlet subject", time.Now())
	if err != nil {
		return nil, err
	}
	pair, err := authority.Sign(pki.Leaf{Name: replica, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPs: []net.IP{address}})
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Roots()}, DisableKeepAlives: true}}
	return s, errors.Join(os.WriteFile(s.CertFile, pair.Certificate, 0o600), os.WriteFile(s.KeyFile, pair.Key, 0o600))
}

// freeAddress returns a random loopback address, such as 127.77.3.5, on which servingPort is
// free. One replica serves its debug endpoint there.
func freeAddress() (net.IP, error) {
	const tries = 10
	var last error
	for range tries {
		address := net.IPv4(127, 0, 0, 0).To4()
		if _, err := rand.Read(address[1:]); err != nil {
			return nil, err
		}
		address[1] |= 1 << 6 // never 127.0.x.y, because other programs use such addresses
		address[3] |= 1      // never 127.x.y.0
		listener, err := net.Listen("tcp4", net.JoinHostPort(address.String(), strconv.Itoa(servingPort)))
		if err == nil {
			return address, listener.Close()
		}
		last = err
	}
	return nil, fmt.Errorf("finding a loopback address with a free port %d: %w", servingPort, last)
}

// bodyBytesMax is the maximum size in bytes of a debug endpoint's response. 64 MiB are enough for
// the stacks of about 50,000 goroutines.
const bodyBytesMax = 64 << 20

// fetch sends a GET request for a path to the replica's debug endpoint and returns the response
// body. A body of more than [bodyBytesMax] bytes is an error.
func (s *Serving) fetch(ctx context.Context, path string) ([]byte, error) {
	url := fmt.Sprintf("https://%s:%d%s", s.Address, servingPort, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("reading the response to GET %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	if len(body) > bodyBytesMax {
		return nil, fmt.Errorf("GET %s: the response has more than %d bytes", url, bodyBytesMax)
	}
	return body, nil
}
