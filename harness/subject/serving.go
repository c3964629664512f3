package subject

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
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
	cert, key, err := servingPair(address)
	if err != nil {
		return nil, fmt.Errorf("making the serving certificate of %s: %w", replica, err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(cert)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	return s, errors.Join(os.WriteFile(s.CertFile, cert, 0o600), os.WriteFile(s.KeyFile, key, 0o600))
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

func servingPair(address net.IP) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "gauntlet subject"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{address},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

// bodyBytesMax bounds what a replica may tell; 64 MiB are the stacks of some 50,000
// goroutines.
const bodyBytesMax = 64 << 20

// ask returns what the replica says under a path. More than bodyBytesMax is an error.
func (s *Serving) ask(ctx context.Context, path string) ([]byte, error) {
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
