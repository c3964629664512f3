package existing

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

func TestVersion(t *testing.T) {
	write := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if _, err := io.WriteString(w, text); err != nil {
				t.Error(err)
			}
		}
	}
	for _, test := range []struct {
		name          string
		answer        http.HandlerFunc
		want, wantErr string
	}{
		{"an API server", write(`{"gitVersion":"v1.36.0"}`), "v1.36.0", ""},
		{"another server", http.NotFound, "", "; expected the URL of a Kubernetes API server in the kubeconfig"},
		{"no JSON", write("<html>"), "", "existing cluster: reading the version of the API server at http://"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := cluster.WriteKubeconfig(path, &rest.Config{Host: server.URL}); err != nil {
				t.Fatal(err)
			}
			got, err := Version(path, "")
			if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("version %q, error %v; want %q, %q", got, err, test.want, test.wantErr)
			}
		})
	}
}

func TestRequestReason(t *testing.T) {
	get := func(err error) error { return &url.Error{Op: "Get", URL: "https://127.0.0.1:1/version", Err: err} }
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("a"), "a"},
		{errors.New("a\nb\nc"), "a"},
		{get(errors.New("x509: unknown authority")), "x509: unknown authority"},
		{get(syscall.ECONNREFUSED), "connection refused; expected a running API server at this address"},
		{get(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "nowhere", Err: "no such host"}}), "found no address of host nowhere; expected a host that this machine can resolve"},
		{get(errors.New("getting credentials: decoding stdout: couldn't get version/kind; json parse error: x")), "the credential plugin of the kubeconfig: found no ExecCredential in its output; expected one in JSON"},
		{get(context.DeadlineExceeded), "no response in time; expected an API server that this machine can reach"},
	} {
		if got := requestReason(test.err); got.Error() != test.want {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}
