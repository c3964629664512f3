package subject

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestServing verifies that fetch accepts only a server with the replica's serving certificate.
func TestServing(t *testing.T) {
	s, err := newServing(t.TempDir(), "subject-0")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.Address, "127.") || !slices.Contains(Settings{}.Flags("k", s), "--bind-address="+s.Address) {
		t.Errorf("address %s; want a loopback address that is in the flags %v", s.Address, Settings{}.Flags("k", s))
	}
	if info, err := os.Stat(s.KeyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key file: %v, error %v; want -rw-------", info.Mode(), err)
	}
	other, err := newServing(t.TempDir(), "subject-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, cert, key, path, want, wantErr string }{
		{"metrics", s.CertFile, s.KeyFile, MetricsPath, "response for /metrics", ""},
		{"goroutines", s.CertFile, s.KeyFile, GoroutinesPath, "response for /debug/pprof/goroutine?debug=2", ""},
		{"forbidden path", s.CertFile, s.KeyFile, "/configz", "", "403"},
		{"large response", s.CertFile, s.KeyFile, "/flood", "", "more than 67108864 bytes"},
		{"another server", other.CertFile, other.KeyFile, MetricsPath, "", "certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pair, err := tls.LoadX509KeyPair(test.cert, test.key)
			if err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("tcp4", net.JoinHostPort(s.Address, strconv.Itoa(servingPort)))
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/configz" {
					http.Error(w, "no", http.StatusForbidden)
					return
				}
				if r.URL.Path == "/flood" {
					_, _ = io.CopyN(w, zeros{}, bodyBytesMax+1)
					return
				}
				_, _ = w.Write([]byte("response for " + r.URL.String()))
			}))
			_ = server.Listener.Close()
			server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{pair}}
			server.StartTLS()
			defer server.Close()
			got, err := s.fetch(t.Context(), test.path)
			if string(got) != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("%q, error %v; want %q and an error with %q", got, err, test.want, test.wantErr)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestNoServing verifies that a replica without a debug endpoint gets a flag that disables the
// port.
func TestNoServing(t *testing.T) {
	if flags := (Settings{}).Flags("k", nil); !slices.Contains(flags, "--secure-port=0") {
		t.Errorf("flags %v; want --secure-port=0", flags)
	}
}
