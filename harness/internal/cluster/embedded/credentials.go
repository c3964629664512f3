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

// credentials contains all keys, certificates and tokens of one cluster.
// They exist in memory and in files of the state directory that only the owner can
// read. They are removed with the cluster.
type credentials struct {
	authorityPEM []byte         // certificate of the authority, whose key is discarded
	roots        *x509.CertPool // the same certificate
	serving      pki.Pair
	etcdClient   pki.Pair
	accountKey   []byte // signs service account tokens
	accountPub   []byte // verifies them
	tokens       cluster.Tokens
}

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
		// The members of etcd use the serving certificate as clients of each other.
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
		return nil, fmt.Errorf("creating the service account key: %w", err)
	}
	return c, nil
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

// pemBlock encodes a PEM block.
func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
