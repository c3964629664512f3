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

// TestStrangersAreRefused: who cannot show the certificate made for the test
// process is not parked, and the subject is not carried to them.
func TestStrangersAreRefused(t *testing.T) {
	pod, _ := pair(t, "subject-0")
	_, stranger := pair(t, "subject-0")
	trusting := func(certificates ...tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: certificates, InsecureSkipVerify: true} // not the stranger's problem
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
		config *tls.Config // nil: no TLS at all
		want   string      // what it is told
	}{
		{"no certificate", trusting(), "certificate required"},
		{"another run's certificate", trusting(load(stranger)), "unknown certificate authority"},
		{"the relay's own certificate", trusting(load(pod)), "bad certificate"},
		{"an old protocol", &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, "protocol version not supported"},
		{"no TLS", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			relay := serve(t, pod, 50*time.Millisecond)
			var conn net.Conn = dial(t, relay.control)
			if test.config != nil {
				conn = tls.Client(conn, test.config)
			} else if _, err := conn.Write([]byte("let me in, whoever you are\n")); err != nil {
				t.Fatal(err)
			}
			heard := make([]byte, 1)
			for {
				n, err := conn.Read(heard)
				if n > 0 && test.config != nil {
					t.Fatalf("the stranger is told %q", heard)
				}
				if err == nil {
					continue // the alert that goes to who speaks no TLS
				}
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one with %q", err, test.want)
				}
				break
			}
			expectRefusal(t, dial(t, relay.subject))
		})
	}
}

// TestOtherRelaysAreRefused: the test process talks to no relay but its own.
func TestOtherRelaysAreRefused(t *testing.T) {
	mine, run := pair(t, "subject-0")
	stranger, _ := pair(t, "subject-0")
	otherName, otherRun := pair(t, "subject-1")
	for _, test := range []struct {
		name     string
		relay    Identity
		identity Identity
		want     string
	}{
		{"another run's relay", stranger, run, "unknown authority"},
		{"the relay of another replica", otherName, otherRun, "not subject-0"},
		{"one that shows the test process's certificate", run, run, "incompatible key usage"},
		{"its own relay, with the relay's certificate", mine, mine, "bad certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			relay, proxy := serve(t, test.relay, bound), listen(t)
			// Who dials more often than there are connections to park has failed before.
			waiting, enough := context.WithCancelCause(t.Context())
			var dialled atomic.Int32
			line, err := Connect(t.Context(), TunnelOptions{
				Name: "subject-0", Identity: test.identity, Proxy: (&dials{to: proxy}).dial,
				Relay: func(ctx context.Context) (net.Conn, error) {
					if dialled.Add(1) > sparesWanted {
						enough(errors.New("enough of it"))
					}
					return (&dials{to: relay.control}).dial(ctx)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer line.Close()
			err = line.WaitReady(waiting)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "enough of it") {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestWaitReadyOfAClosedLine(t *testing.T) {
	pod, run := pair(t, "subject-0")
	relay := serve(t, pod, bound)
	relay.stop()
	line, _ := connect(t, run, relay, listen(t), nil)
	line.Close()
	if err := line.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "the line was closed") {
		t.Errorf("got %v", err)
	}
}

func TestIdentityAsFiles(t *testing.T) {
	want, _ := pair(t, "subject-0")
	dir := t.TempDir()
	if _, err := ReadIdentity(dir); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "expected tls.crt, tls.key and ca.crt") {
		t.Errorf("of an empty directory: %v", err)
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
			t.Errorf("%s came back as another", name)
		}
	}
	got.Authority = got.Key
	if _, err := got.tls(); err == nil || !strings.Contains(err.Error(), "authority's certificate in PEM") {
		t.Errorf("a key for an authority: %v", err)
	}
	got.Key = []byte("nothing")
	if _, err := Connect(t.Context(), TunnelOptions{Identity: got}); err == nil || !strings.Contains(err.Error(), "the relay's identity") {
		t.Errorf("no key: %v", err)
	}
	subject, control := listen(t), listen(t)
	if err := Serve(t.Context(), Options{Subject: subject, Control: control, Identity: got}); err == nil {
		t.Error("a relay serves without a key")
	}
	if _, err := subject.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener of a relay that does not serve: %v", err)
	}
}
