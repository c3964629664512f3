// Package pki creates X.509 certificate authorities, certificates and private keys.
//
// gauntlet creates a separate certificate authority for each pair of components that authenticate
// each other. The authority's private key exists only in memory.
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

// These constants are the validity period of all certificates, relative to the time in the argument
// now of NewAuthority.
const (
	// validBefore is how long before now the validity begins. On a machine whose clock is
	// behind, a new certificate is therefore already valid.
	validBefore = time.Hour
	// validAfter is how long after now the validity ends. No run takes so long.
	validAfter = 30 * 24 * time.Hour
)

// Authority is a certificate authority with its private key. It signs the certificates of
// components.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time // validity of certificates: from now-validBefore to now+validAfter
}

// Leaf describes a server or client certificate. [Authority.Sign] creates the certificate.
type Leaf struct {
	// Name is the common name (CN) of the certificate.
	Name string
	// Usage lists the extended key usages, such as server authentication.
	Usage []x509.ExtKeyUsage
	// DNSNames lists the DNS names of the server. It is empty for a client.
	DNSNames []string
	// IPs lists the IP addresses of the server. It is empty for a client.
	IPs []net.IP
}

// Pair contains a certificate and its private key, each PEM-encoded.
type Pair struct{ Certificate, Key []byte }

// NewAuthority creates a certificate authority with the given common name. The authority's
// certificate is valid from one hour before now until 30 days after now. The certificates that
// the authority signs have the same validity.
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

// PEM returns the authority's own certificate, PEM-encoded and without the private key.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// Roots returns a certificate pool that contains only this authority, to verify the certificates
// that it has signed.
func (a *Authority) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Sign creates a private key and a certificate that the authority signs. The argument leaf
// describes the certificate.
//
// Sign returns an error if leaf.Name is the common name of the authority. The certificate's
// subject and issuer would then be equal, and verifiers would treat the certificate as
// self-signed.
func (a *Authority) Sign(leaf Leaf) (Pair, error) {
	fail := func(err error) (Pair, error) {
		return Pair{}, fmt.Errorf("creating the certificate of %s: %w", leaf.Name, err)
	}
	if leaf.Name == a.certificate.Subject.CommonName {
		return fail(errors.New("the name of the certificate must differ from the name of its certificate authority"))
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

// template returns a certificate template with the given common name and the authority's
// validity period. It sets no serial number, because x509.CreateCertificate generates one.
func (a *Authority) template(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: a.now.Add(-validBefore), NotAfter: a.now.Add(validAfter),
	}
}

// newKey generates an ECDSA private key for the curve P-256.
func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// encode encodes DER bytes as a PEM block of the given type, such as "CERTIFICATE".
func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
