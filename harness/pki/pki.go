// Package pki creates the certificate authorities, certificates and keys of a run.
//
// Each pair of components that authenticate each other gets its own certificate
// authority. The private key of an authority exists only in memory.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

// A certificate is valid for longer than any run. Its validity starts in the past,
// so that it is valid on machines whose clock is behind.
const (
	validBefore = time.Hour
	validAfter  = 30 * 24 * time.Hour
)

// Authority is a certificate authority.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time
}

// Leaf describes a certificate to sign.
type Leaf struct {
	// Name is the common name of the subject.
	Name string
	// Usage lists the extended key usages.
	Usage []x509.ExtKeyUsage
	// DNSNames are the DNS names of a server.
	DNSNames []string
	// IPs are the IP addresses of a server.
	IPs []net.IP
}

// Pair is a certificate and its private key, both PEM-encoded.
type Pair struct{ Certificate, Key []byte }

// NewAuthority creates a certificate authority with the given common name.
// now determines the validity period of its own certificate and of those that it signs.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("creating the key of certificate authority %s: %w", name, err)
	}
	a := &Authority{key: key, now: now}
	template := a.template(name)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of certificate authority %s: %w", name, err)
	}
	return a, nil
}

// PEM returns the PEM-encoded certificate of the authority.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// Roots returns a certificate pool that contains only this authority.
func (a *Authority) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Sign creates a key and signs a certificate for it. The name of the leaf must differ
// from the name of the authority. Otherwise verifiers treat the certificate as
// self-signed, because subject and issuer are equal.
func (a *Authority) Sign(leaf Leaf) (Pair, error) {
	fail := func(err error) (Pair, error) {
		return Pair{}, fmt.Errorf("creating the certificate of %s: %w", leaf.Name, err)
	}
	if leaf.Name == a.certificate.Subject.CommonName {
		return fail(errors.New("the name must differ from the name of the certificate authority"))
	}
	key, err := newKey()
	if err != nil {
		return fail(err)
	}
	template := a.template(leaf.Name)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, leaf.Usage
	template.DNSNames, template.IPAddresses = leaf.DNSNames, leaf.IPs
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	return Pair{encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)}, nil
}

// template returns the fields that all certificates share. It sets no serial number,
// because x509.CreateCertificate generates one.
func (a *Authority) template(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: a.now.Add(-validBefore), NotAfter: a.now.Add(validAfter),
	}
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
