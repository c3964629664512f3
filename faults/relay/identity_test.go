package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRelayRejectsOtherClients checks that the relay accepts only clients with the
// certificate of the gauntlet process.
func TestRelayRejectsOtherClients(t *testing.T) {
	pod, _ := pair(t, "subject-0")
	_, otherRun := pair(t, "subject-0")
	clientConfig := func(certificates ...tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: certificates, InsecureSkipVerify: true} // this test needs only the relay's verification of the client
	}
	load := func(i Identity) tls.Certificate {
		certificate, err := tls.X509KeyPair(i.Certificate, i.Key)
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	for _, test := range []struct {
		name   string
		config *tls.Config // nil means that the client does not use TLS
		want   string      // text that the client's error must contain
	}{
		{"no certificate", clientConfig(), "certificate required"},
		{"certificate of another run", clientConfig(load(otherRun)), "unknown certificate authority"},
		{"certificate of the relay", clientConfig(load(pod)), "bad certificate"},
		{"old TLS version", &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, "protocol version not supported"},
		{"no TLS", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			relay := serve(t, pod, 50*time.Millisecond)
			var conn net.Conn = dial(t, relay.control)
			if test.config != nil {
				conn = tls.Client(conn, test.config)
			} else if _, err := conn.Write([]byte("not a TLS record\n")); err != nil {
				t.Fatal(err)
			}
			received := make([]byte, 1)
			for {
				n, err := conn.Read(received)
				if n > 0 && test.config != nil {
					t.Fatalf("the relay sent %q to a client that it must reject", received)
				}
				if err == nil {
					continue // a client without TLS receives the bytes of a TLS alert
				}
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one that contains %q", err, test.want)
				}
				break
			}
			expectReset(t, dial(t, relay.subject))
		})
	}
}

// TestConnectRejectsOtherRelays checks that the gauntlet process connects only to a relay with
// the expected certificate and name.
func TestConnectRejectsOtherRelays(t *testing.T) {
	pod, run := pair(t, "subject-0")
	podOfOtherRun, _ := pair(t, "subject-0")
	otherPod, otherRun := pair(t, "subject-1")
	for _, test := range []struct {
		name     string
		relay    Identity
		identity Identity
		want     string
	}{
		{"relay of another run", podOfOtherRun, run, "unknown authority"},
		{"relay of another replica", otherPod, otherRun, "not subject-0"},
		{"relay with the certificate of the gauntlet process", run, run, "incompatible key usage"},
		{"gauntlet process with the certificate of the relay", pod, pod, "bad certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			relay, proxy := serve(t, test.relay, testTimeout), listen(t)
			// If Connect dials more often than idleWanted times, an earlier attempt has failed.
			waiting, cancelWait := context.WithCancelCause(t.Context())
			var dialed atomic.Int32
			tunnel, err := Connect(t.Context(), TunnelOptions{
				Name: "subject-0", Identity: test.identity, Proxy: (&dialer{to: proxy}).dial,
				Relay: func(ctx context.Context) (net.Conn, error) {
					if dialed.Add(1) > idleWanted {
						cancelWait(errors.New("canceled by the test"))
					}
					return (&dialer{to: relay.control}).dial(ctx)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer tunnel.Close()
			err = tunnel.WaitReady(waiting)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "canceled by the test") {
				t.Errorf("WaitReady(): error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

func TestWaitReadyAfterClose(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay := serve(t, pod, testTimeout)
	relay.stop()
	tunnel, _ := connect(t, run, relay, listen(t), nil)
	tunnel.Close()
	if err := tunnel.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "gauntlet closed the tunnel") {
		t.Errorf("WaitReady() after Close(): error %v, want one that contains \"gauntlet closed the tunnel\"", err)
	}
}

func TestIdentityFiles(t *testing.T) {
	want, _ := pair(t, "subject-0")
	dir := t.TempDir()
	if _, err := ReadIdentity(dir); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "expected the files tls.crt, tls.key and ca.crt") {
		t.Errorf("ReadIdentity of an empty directory: error %v, want an error that lists the expected files", err)
	}
	for name, content := range want.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range want.Files() {
		if string(got.Files()[name]) != string(content) {
			t.Errorf("content of %s differs after writing and reading it", name)
		}
	}
	got.Authority = got.Key
	if _, err := got.tls(); err == nil || !strings.Contains(err.Error(), "found no CA certificate") {
		t.Errorf("identity with a key as its authority: error %v, want one about the CA certificate", err)
	}
	got.Key = []byte("nothing")
	if _, err := Connect(t.Context(), TunnelOptions{Identity: got}); err == nil || !strings.Contains(err.Error(), "relay identity") {
		t.Errorf("Connect() with an invalid key: error %v, want one that contains \"relay identity\"", err)
	}
	subject, control := listen(t), listen(t)
	if err := Serve(t.Context(), Options{Subject: subject, Control: control, Identity: got}); err == nil {
		t.Error("Serve() with an invalid key returned no error")
	}
	if _, err := subject.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept() on the listener after Serve() failed: error %v, want %v", err, net.ErrClosed)
	}
}
