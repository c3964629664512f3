package existing

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
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

func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{"a": "a", "a\nb\nc": "a"} {
		if got := firstLine(errors.New(text)); got.Error() != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
