package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"
)

var loopback = net.IPv4(127, 0, 0, 1)

func newAuthority(t *testing.T, now time.Time) *Authority {
	t.Helper()
	a, err := NewAuthority("the authority", now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sign(t *testing.T, a *Authority, leaf Leaf) tls.Certificate {
	t.Helper()
	pair, err := a.Sign(leaf)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// TestVerify checks which certificates a client accepts if it trusts only one authority.
func TestVerify(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	authority, other := newAuthority(t, now), newAuthority(t, now)
	server := Leaf{Name: "server", Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"here"}, IPs: []net.IP{loopback}}
	for _, test := range []struct {
		name  string
		roots *x509.CertPool
		at    time.Duration
		host  string
		usage x509.ExtKeyUsage
		want  string // text in the error; empty if the certificate is valid
	}{
		{"DNS name", authority.Roots(), 0, "here", x509.ExtKeyUsageServerAuth, ""},
		{"IP address", authority.Roots(), 0, "127.0.0.1", x509.ExtKeyUsageServerAuth, ""},
		{"clock of the client is behind", authority.Roots(), -59 * time.Minute, "here", x509.ExtKeyUsageServerAuth, ""},
		{"after 29 days", authority.Roots(), 29 * 24 * time.Hour, "here", x509.ExtKeyUsageServerAuth, ""},
		{"another DNS name", authority.Roots(), 0, "there", x509.ExtKeyUsageServerAuth, "not there"},
		{"another IP address", authority.Roots(), 0, "127.0.0.2", x509.ExtKeyUsageServerAuth, "127.0.0.2"},
		{"another key usage", authority.Roots(), 0, "here", x509.ExtKeyUsageClientAuth, "incompatible key usage"},
		{"another authority with the same name", other.Roots(), 0, "here", x509.ExtKeyUsageServerAuth, "unknown authority"},
		{"after 31 days", authority.Roots(), 31 * 24 * time.Hour, "here", x509.ExtKeyUsageServerAuth, "expired"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := sign(t, authority, server).Leaf.Verify(x509.VerifyOptions{
				Roots: test.roots, CurrentTime: now.Add(test.at), DNSName: test.host, KeyUsages: []x509.ExtKeyUsage{test.usage},
			})
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("Verify(): error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

// TestPEM checks the PEM encoding of an authority's certificate and of a signed certificate.
func TestPEM(t *testing.T) {
	authority := newAuthority(t, time.Now())
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority.PEM()) {
		t.Fatalf("no certificate in %q", authority.PEM())
	}
	if !pool.Equal(authority.Roots()) {
		t.Error("the PEM-encoded authority differs from Roots()")
	}
	one, two := sign(t, authority, Leaf{Name: "one"}), sign(t, authority, Leaf{Name: "two"})
	if one.Leaf.SerialNumber.Cmp(two.Leaf.SerialNumber) == 0 {
		t.Error("two certificates have the same serial number")
	}
	if one.Leaf.IsCA {
		t.Error("a leaf certificate is a certificate authority")
	}
	if len(one.Leaf.AuthorityKeyId) == 0 || string(one.Leaf.AuthorityKeyId) != string(authority.certificate.SubjectKeyId) {
		t.Errorf("authority key ID of the leaf certificate is %x, want %x", one.Leaf.AuthorityKeyId, authority.certificate.SubjectKeyId)
	}
	if _, err := authority.Sign(Leaf{Name: "the authority"}); err == nil || !strings.Contains(err.Error(), "must differ") {
		t.Errorf("Sign() with the name of the authority: error %v, want one that contains \"must differ\"", err)
	}
}
