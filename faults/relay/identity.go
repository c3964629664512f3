package relay

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
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Identity is what one end of a relay shows the other, and knows the other by.
// All of it is PEM.
type Identity struct {
	Certificate, Key []byte
	// Authority signed the certificates of both ends, and no others.
	Authority []byte
}

// validFor is how long the certificates of a run hold.
const validFor = 30 * 24 * time.Hour

// NewPair makes the identities of the two ends of one relay. The name, a DNS
// label such as "subject-0", is the relay's: a test process that meets another
// relay than the one it means does not talk to it. The key that signed them is
// forgotten.
func NewPair(name string, now time.Time) (pod, run Identity, err error) {
	fail := func(err error) (Identity, Identity, error) {
		return Identity{}, Identity{}, fmt.Errorf("making the certificates of the relay of %s: %w", name, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "gauntlet relay of " + name},
		NotBefore:             now.Add(-time.Hour), // clocks may differ
		NotAfter:              now.Add(validFor),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	if err != nil {
		return fail(err)
	}
	identities := []*Identity{&pod, &run}
	for i, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if *identities[i], err = sign(authority, key, name, int64(i)+2, usage); err != nil {
			return fail(err)
		}
		identities[i].Authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return pod, run, nil
}

// sign makes a key and a certificate for one usage: neither end can pass for the
// other.
func sign(authority *x509.Certificate, by *ecdsa.PrivateKey, name string, serial int64, usage x509.ExtKeyUsage) (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{usage},
		DNSNames:     []string{name},
	}, authority, &key.PublicKey, by)
	if err != nil {
		return Identity{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Identity{}, err
	}
	return Identity{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
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
