package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// credentials is all the keys of one cluster. They live as long as it does: in
// this memory, and in files of its state directory that only their owner reads.
type credentials struct {
	authorityPEM []byte // the CA's certificate; its key is dropped once it has signed
	serving      keyPair
	etcdClient   keyPair
	accountKey   []byte // signs service account tokens
	accountPub   []byte // verifies them
	tokens       cluster.Tokens
}

// roots is the authority, as those have it who check a certificate.
func (c *credentials) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.authorityPEM)
	return pool
}

// keyPair is a certificate and its key, PEM.
type keyPair struct{ cert, key []byte }

// validity is how long certificates are valid: longer than any run, and from
// before now, for a clock that is set back.
const validity = 30 * 24 * time.Hour

func newCredentials(now time.Time) (*credentials, error) {
	c := &credentials{tokens: cluster.NewTokens()}
	authority, authorityKey, err := newAuthority(now)
	if err != nil {
		return nil, fmt.Errorf("making the cluster's certificate authority: %w", err)
	}
	c.authorityPEM = pemBlock("CERTIFICATE", authority.Raw)
	for _, leaf := range []struct {
		pair  *keyPair
		name  string
		usage []x509.ExtKeyUsage
	}{
		// etcd's members are clients of each other with their serving key.
		{&c.serving, "gauntlet-server", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}},
		{&c.etcdClient, "kube-apiserver-etcd-client", []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		if *leaf.pair, err = newLeaf(leaf.name, leaf.usage, now, authority, authorityKey); err != nil {
			return nil, fmt.Errorf("making the certificate of %s: %w", leaf.name, err)
		}
	}
	if c.accountKey, c.accountPub, err = newAccountKey(); err != nil {
		return nil, fmt.Errorf("making the service account key: %w", err)
	}
	return c, nil
}

func newAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := certificateTemplate("gauntlet-embedded-cluster", now)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func newLeaf(name string, usage []x509.ExtKeyUsage, now time.Time, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	template := certificateTemplate(name, now)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, usage
	template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), authorityKey)
	if err != nil {
		return keyPair{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{pemBlock("CERTIFICATE", der), pemBlock("EC PRIVATE KEY", keyDER)}, nil
}

func certificateTemplate(name string, now time.Time) *x509.Certificate {
	serial := new(big.Int).SetBytes([]byte(rand.Text()))
	return &x509.Certificate{
		SerialNumber: serial.Rsh(serial, 64), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
	}
}

func newAccountKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return pemBlock("EC PRIVATE KEY", keyDER), pemBlock("PUBLIC KEY", publicDER), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
