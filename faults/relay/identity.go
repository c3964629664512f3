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

// Identity is what one end of a relay shows the other, and knows the other by.
// All of it is PEM.
type Identity struct {
	Certificate, Key []byte
	// Authority signed the certificates of both ends, and no others.
	Authority []byte
}

// NewPair makes the identities of the two ends of one relay. The name, a DNS
// label such as "subject-0", is the relay's: a test process that meets another
// relay than the one it means does not talk to it. The key that signed them is
// forgotten. Neither end can pass for the other.
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

// The files of an identity: the names that a TLS secret has for them.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	authorityFile   = "ca.crt"
)

// Files is the identity as files, by name.
func (i Identity) Files() map[string][]byte {
	return map[string][]byte{certificateFile: i.Certificate, keyFile: i.Key, authorityFile: i.Authority}
}

// ReadIdentity reads an identity's files from a directory.
func ReadIdentity(dir string) (Identity, error) {
	var i Identity
	for name, content := range map[string]*[]byte{certificateFile: &i.Certificate, keyFile: &i.Key, authorityFile: &i.Authority} {
		var err error
		if *content, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return Identity{}, fmt.Errorf("reading the relay's identity: expected %s, %s and %s: %w", certificateFile, keyFile, authorityFile, err)
		}
	}
	return i, nil
}

// tls is the identity in the form in which both ends use it.
func (i Identity) tls() (*tls.Config, error) {
	own, err := tls.X509KeyPair(i.Certificate, i.Key)
	if err != nil {
		return nil, fmt.Errorf("the relay's identity: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(i.Authority) {
		return nil, errors.New("the relay's identity: expected the authority's certificate in PEM")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
		// A connection is used once; there is nothing to come back to.
		SessionTicketsDisabled: true,
	}, nil
}
