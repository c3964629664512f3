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

// credentials is all the keys of one cluster. They live as long as it does: in
// this memory, and in files of its state directory that only their owner reads.
type credentials struct {
	authorityPEM []byte         // the CA's certificate; its key is dropped once it has signed
	roots        *x509.CertPool // the same, as those have it who check a certificate
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
		// etcd's members are clients of each other with their serving key.
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
		return nil, fmt.Errorf("making the service account key: %w", err)
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

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
