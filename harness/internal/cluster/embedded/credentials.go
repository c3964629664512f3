package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/pki"
)

// credentials contains all keys, certificates and tokens of one cluster. layout.write copies them
// to files in the state directory, which [Cluster.Stop] removes.
type credentials struct {
	authorityPEM []byte         // CA certificate as PEM; the CA key is not stored
	roots        *x509.CertPool // certificate pool with the CA certificate in authorityPEM
	serving      pki.Pair       // serving certificate of all components
	etcdClient   pki.Pair       // certificate with which kube-apiserver connects to etcd
	accountKey   []byte         // private key that signs ServiceAccount tokens, as PEM
	accountPub   []byte         // public key that verifies ServiceAccount tokens, as PEM
	tokens       cluster.Tokens
}

// newCredentials generates the credentials of a new cluster. The argument now is the current time;
// it determines how long the certificates are valid.
func newCredentials(now time.Time) (*credentials, error) {
	authority, err := pki.NewAuthority("gauntlet-embedded-cluster", now)
	if err != nil {
		return nil, err
	}
	c := &credentials{authorityPEM: authority.PEM(), roots: authority.Roots(), tokens: cluster.NewTokens()}
	for _, leaf := range []struct {
		pair  *pki.Pair
		name  string
		usage []x509.ExtKeyUsage
	}{
		// etcd uses this certificate also as a client certificate when it connects to other
		// members.
		{&c.serving, "gauntlet-server", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}},
		{&c.etcdClient, "kube-apiserver-etcd-client", []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		*leaf.pair, err = authority.Sign(pki.Leaf{
			Name: leaf.name, Usage: leaf.usage, DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
		})
		if err != nil {
			return nil, err
		}
	}
	if c.accountKey, c.accountPub, err = newAccountKey(); err != nil {
		return nil, fmt.Errorf("creating the key that signs ServiceAccount tokens: %w", err)
	}
	return c, nil
}

// newAccountKey generates a key pair that signs and verifies ServiceAccount tokens, as PEM.
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

// pemBlock encodes a DER value as a PEM block. The argument kind is the type in the block's header,
// such as "PUBLIC KEY".
func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
