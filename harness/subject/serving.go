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

// What a replica tells of itself to whoever asks.
const (
	MetricsPath    = "/metrics"
	GoroutinesPath = "/debug/pprof/goroutine?debug=2"
)

// servingPort is where replicas serve, each on an address of its own. It is below the
// ports that Linux hands out by itself, so that nobody has it by chance.
const servingPort = 20257

// Serving is where a replica serves its metrics and goroutines: on an address of
// loopback that nobody else has, so that another process can neither take its port
// nor be taken for it.
type Serving struct {
	Address           string // 127.x.y.z
	CertFile, KeyFile string // of the address alone

	client *http.Client // trusts that certificate and no other
}

// flags make a replica serve, and anyone on the machine may read what they name: it
// has no secret. Rights at the API server it takes none for that.
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

// newServing finds an address for a replica and writes its certificate into a
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

// freeAddress draws an address of loopback until one is free, which nearly all are.
func freeAddress() (net.IP, error) {
	const tries = 10
	var last error
	for range tries {
		address := net.IPv4(127, 0, 0, 0).To4()
		if _, err := rand.Read(address[1:]); err != nil {
			return nil, err
		}
		address[1] |= 1 << 6 // not where others are by habit
		address[3] |= 1
		listener, err := net.Listen("tcp4", net.JoinHostPort(address.String(), strconv.Itoa(servingPort)))
		if err == nil {
			return address, listener.Close()
		}
		last = err
	}
	return nil, fmt.Errorf("looking for an address of loopback to serve on: %w", last)
}

// bodyBytesMax bounds what a replica may tell; 64 MiB are the stacks of some 50,000
// goroutines.
const bodyBytesMax = 64 << 20

// fetch returns what the replica says under a path. More than bodyBytesMax is an error.
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
		return nil, fmt.Errorf("%s: more than %d bytes", url, bodyBytesMax)
	}
	return body, nil
}
