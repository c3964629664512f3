// Package pki makes the keys and certificates of a run: an authority for each pair of
// ends that have to know each other, and what it signs for them. An authority's key is
// in no file and goes with the memory that it is in; who has the authority's
// certificate trusts what it signed, and nothing else.
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

// What certificates are valid for: longer than any run lasts, and since before now,
// for clocks that differ or are set back.
const (
	validBefore = time.Hour
	validAfter  = 30 * 24 * time.Hour
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time
}

// Leaf is what a certificate says of who shows it.
type Leaf struct {
	Name  string // the common name
	Usage []x509.ExtKeyUsage
	// DNSNames and IPs are where it may be met, if it serves.
	DNSNames []string
	IPs      []net.IP
}

// Pair is a certificate and its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// NewAuthority makes an authority of that name. Certificates are valid around now.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
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
		return nil, fmt.Errorf("making the certificate of the authority %s: %w", name, err)
	}
	return a, nil
}

// PEM is the authority's certificate, by which others know what it signed.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// Roots is the authority as the only one that is trusted.
func (a *Authority) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Sign makes a key and signs a certificate of it. The leaf's name must not be the
// authority's: a certificate whose subject is its issuer passes for signed by itself.
func (a *Authority) Sign(leaf Leaf) (Pair, error) {
	fail := func(err error) (Pair, error) {
		return Pair{}, fmt.Errorf("making the certificate of %s: %w", leaf.Name, err)
	}
	if leaf.Name == a.certificate.Subject.CommonName {
		return fail(errors.New("expected another name than that of its authority"))
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

// template is what all certificates have. The serial number is drawn by who signs.
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
