// Package pki creates X.509 certificate authorities, certificates and private keys.
//
// gauntlet creates a separate certificate authority for each pair of components that authenticate
// each other. The private key of an authority exists only in memory.
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

// The validity period of all certificates, relative to the argument now of NewAuthority.
const (
	// validBefore is how long before now the validity begins. A certificate is therefore also valid
	// on machines whose clock is behind.
	validBefore = time.Hour
	// validAfter is how long after now the validity ends. It is longer than any run.
	validAfter = 30 * 24 * time.Hour
)

// Authority is a certificate authority with its private key.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time // determines the validity period of signed certificates
}

// Leaf describes a server or client certificate that [Authority.Sign] creates.
type Leaf struct {
	// Name is the common name (CN) of the certificate.
	Name string
	// Usage lists the extended key usages, such as server authentication.
	Usage []x509.ExtKeyUsage
	// DNSNames lists the DNS names of the server; empty for a client.
	DNSNames []string
	// IPs lists the IP addresses of the server; empty for a client.
	IPs []net.IP
}

// Pair is a certificate with its private key. Both are PEM-encoded.
type Pair struct{ Certificate, Key []byte }

// NewAuthority creates a certificate authority with the given common name. Its certificate, and all
// certificates that it signs, are valid from one hour before now until 30 days after now.
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

// PEM returns the certificate of the authority, PEM-encoded and without the private key.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// Roots returns a certificate pool that contains only this authority.
func (a *Authority) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Sign creates a private key, and a certificate for it that the authority signs.
//
// It returns an error if leaf.Name is the name of the authority. Verifiers would treat such a
// certificate as self-signed, because its subject and its issuer are equal.
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

// template returns a certificate template with the given common name and the validity period of the
// authority. It sets no serial number, because x509.CreateCertificate generates one.
func (a *Authority) template(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: a.now.Add(-validBefore), NotAfter: a.now.Add(validAfter),
	}
}

// newKey generates a private key.
func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// encode encodes DER data as a PEM block of the given type.
func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
