package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestWriteKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	want := &rest.Config{
		Host: "https://127.0.0.1:6443", BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority"), ServerName: "kubernetes"},
	}
	if err := WriteKubeconfig(path, want); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file mode %v (error %v), want 0600", info.Mode(), err)
	}
	got, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("configuration in the file (-want +got):\n%s", diff)
	}
	if got.BearerToken != want.BearerToken {
		t.Error("the bearer token in the file differs")
	}
}
