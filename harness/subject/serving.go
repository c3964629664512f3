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

// Paths under which a replica serves debug information.
const (
	MetricsPath    = "/metrics"
	GoroutinesPath = "/debug/pprof/goroutine?debug=2"
)

// servingPort is the port of every replica; each has its own address. The port is below
// Linux's ephemeral range, so no client connection uses it.
const servingPort = 20257

// Serving describes the HTTPS endpoint of a replica. Each replica has a loopback
// address of its own, so no other process can occupy its port or be mistaken for it.
type Serving struct {
	Address           string // 127.x.y.z
	CertFile, KeyFile string // valid for the address only

	client *http.Client // trusts only that certificate
}

// flags returns the flags that make a replica serve. Every process on the machine may
// read metrics and goroutines, because these contain no secrets. The replica therefore
// needs no permission to authorize requests.
func (s *Serving) flags() []string {
	if s == nil {
		return []string{"--secure-port=0"}
	}
	return []string{
		"--bind-address=" + s.Address,
		"--secure-port=" + strconv.Itoa(servingPort),
		"--tls-cert-file=" + s.CertFile,
		"--tls-private-key-file=" + s.KeyFile,
		"--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics,/debug/pprof/goroutine",
	}
}

// newServing chooses an address for a replica and writes its certificate to a
// directory.
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

// freeAddress returns a random loopback address whose port is free.
func freeAddress() (net.IP, error) {
	const tries = 10
	var last error
	for range tries {
		address := net.IPv4(127, 0, 0, 0).To4()
		if _, err := rand.Read(address[1:]); err != nil {
			return nil, err
		}
		address[1] |= 1 << 6 // avoid 127.0.0.1 and its neighbors, which other programs use
		address[3] |= 1
		listener, err := net.Listen("tcp4", net.JoinHostPort(address.String(), strconv.Itoa(servingPort)))
		if err == nil {
			return address, listener.Close()
		}
		last = err
	}
	return nil, fmt.Errorf("finding a loopback address with a free port %d: %w", servingPort, last)
}

// bodyBytesMax limits the size of a response. 64 MiB are enough for the stacks of
// about 50,000 goroutines.
const bodyBytesMax = 64 << 20

// fetch sends a GET request for a path to the replica and returns the response. A
// response of more than bodyBytesMax is an error.
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
		return nil, fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	if len(body) > bodyBytesMax {
		return nil, fmt.Errorf("%s: the response has more than %d bytes", url, bodyBytesMax)
	}
	return body, nil
}
