package relay

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/pki"
)

// Identity contains the credentials of one end of a relay. All fields are PEM-encoded.
type Identity struct {
	// Certificate is the certificate of this end.
	Certificate []byte
	// Key is the private key of the certificate.
	Key []byte
	// Authority is the certificate of the authority that signed the certificates of
	// both ends, and no others.
	Authority []byte
}

// NewPair creates the identities of the two ends of one relay.
// name is the name of the relay, a DNS label such as "subject-0". The test process
// verifies it, so it never connects to the relay of another replica. The certificate of one
// end is not valid for the other end. The key of the authority is discarded.
func NewPair(name string, now time.Time) (pod, run Identity, err error) {
	authority, err := pki.NewAuthority("gauntlet relay of "+name, now)
	if err != nil {
		return Identity{}, Identity{}, err
	}
	identities := []*Identity{&pod, &run}
	for i, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		pair, err := authority.Sign(pki.Leaf{Name: name, Usage: []x509.ExtKeyUsage{usage}, DNSNames: []string{name}})
		if err != nil {
			return Identity{}, Identity{}, err
		}
		*identities[i] = Identity{Certificate: pair.Certificate, Key: pair.Key, Authority: authority.PEM()}
	}
	return pod, run, nil
}

// The file names of an identity, which are the keys of a kubernetes.io/tls Secret.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	authorityFile   = "ca.crt"
)

// Files returns the content of the files of the identity by file name.
func (i Identity) Files() map[string][]byte {
	return map[string][]byte{certificateFile: i.Certificate, keyFile: i.Key, authorityFile: i.Authority}
}

// ReadIdentity reads an identity's files from a directory.
func ReadIdentity(dir string) (Identity, error) {
	var i Identity
	for name, content := range map[string]*[]byte{certificateFile: &i.Certificate, keyFile: &i.Key, authorityFile: &i.Authority} {
		var err error
		if *content, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return Identity{}, fmt.Errorf("reading the relay identity: expected the files %s, %s and %s: %w", certificateFile, keyFile, authorityFile, err)
		}
	}
	return i, nil
}

// tls returns the TLS configuration for either end.
func (i Identity) tls() (*tls.Config, error) {
	own, err := tls.X509KeyPair(i.Certificate, i.Key)
	if err != nil {
		return nil, fmt.Errorf("relay identity: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(i.Authority) {
		return nil, errors.New("relay identity: the CA certificate is not PEM-encoded")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
		// No session is ever resumed, so session tickets are not needed.
		SessionTicketsDisabled: true,
	}, nil
}
