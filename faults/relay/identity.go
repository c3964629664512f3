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

// Identity contains the TLS credentials of one side of a relay. The two sides are the relay in
// the pod and the gauntlet process. All fields are in PEM.
type Identity struct {
	// Certificate is the TLS certificate of this side: of the relay or of the gauntlet process.
	Certificate []byte
	// Key is the private key of Certificate.
	Key []byte
	// Authority is the CA certificate that signed the certificates of the two sides, and no
	// other certificates.
	Authority []byte
}

// NewPair creates the identities of the two sides of one relay. The result pod is the identity of
// the relay in the pod. The result run is the identity of the gauntlet process.
//
// The argument name is a DNS label such as "subject-0". The gauntlet process verifies the name, so
// it never connects to the relay of another replica. One side cannot use the certificate of the
// other side. NewPair discards the private key of the CA.
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

// These are the file names of a TLS identity: certificate, private key and CA certificate. A
// kubernetes.io/tls Secret usually has the same keys.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	authorityFile   = "ca.crt"
)

// Files returns the files that contain the identity. The map's keys are file names, such as
// tls.crt.
func (i Identity) Files() map[string][]byte {
	return map[string][]byte{certificateFile: i.Certificate, keyFile: i.Key, authorityFile: i.Authority}
}

// ReadIdentity reads an identity from the files in a directory. [Identity.Files] describes these
// files.
func ReadIdentity(dir string) (Identity, error) {
	var i Identity
	for name, content := range map[string]*[]byte{certificateFile: &i.Certificate, keyFile: &i.Key, authorityFile: &i.Authority} {
		var err error
		if *content, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return Identity{}, fmt.Errorf("reading the relay identity in %s: expected the files %s, %s and %s: %w", dir, certificateFile, keyFile, authorityFile, err)
		}
	}
	return i, nil
}

// tls returns this side's TLS configuration. It is for use as server and as client, and accepts
// only the certificate of the other side.
func (i Identity) tls() (*tls.Config, error) {
	own, err := tls.X509KeyPair(i.Certificate, i.Key)
	if err != nil {
		return nil, fmt.Errorf("relay identity: loading the certificate and its private key: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(i.Authority) {
		return nil, errors.New("relay identity: found no CA certificate in Authority (ca.crt); expected a certificate in PEM")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
		// The relay never resumes a TLS session, so it needs no session tickets.
		SessionTicketsDisabled: true,
	}, nil
}
