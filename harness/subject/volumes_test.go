package subject

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// TestWriteVolumes checks the mounts of a replica and the files in them.
func TestWriteVolumes(t *testing.T) {
	dir := t.TempDir()
	volumes := []Volume{
		{Path: "/z", Files: map[string]string{"a.yaml": "at: {{.Address}}", "b": "{{.Namespace}}"}},
		{Path: "/a.yaml", Files: map[string]string{"a.yaml": "1"}, File: "a.yaml"},
		{Path: "/certs", Certificates: true},
		{Path: "/data"},
		{Path: "/home/me", Files: map[string]string{"a": "1"}}, // would hide the program
	}
	mounts, err := writeVolumes(volumes, dir, Values{Address: "127.0.0.9", Namespace: "system", Certificates: "/serving"}, dir, "/home/me/program")
	if err != nil {
		t.Fatal(err)
	}
	want := []process.Mount{
		{Source: filepath.Join(dir, "1", "a.yaml"), Target: "/a.yaml"}, {Source: "/serving", Target: "/certs"},
		{Source: filepath.Join(dir, "3"), Target: "/data"}, {Source: filepath.Join(dir, "0"), Target: "/z"},
	}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"0/a.yaml": "at: 127.0.0.9", "0/b": "system", "1/a.yaml": "1"} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != want {
			t.Errorf("%s: found %q (error %v), expected %q", path, got, err, want)
		}
	}
}

// TestAccount checks the files and variables with which a program in a cluster finds the API server.
func TestAccount(t *testing.T) {
	dir := t.TempDir()
	config := &rest.Config{Host: "https://127.0.0.1:6443", BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority")}}
	account, env, err := accountOf(config)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443"}; !slices.Equal(env, want) {
		t.Errorf("variables %q, expected %q", env, want)
	}
	mounts, err := writeVolumes([]Volume{account}, dir, Values{Namespace: "system"})
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "0")
	if diff := cmp.Diff([]process.Mount{{Source: source, Target: "/var/run/secrets/kubernetes.io/serviceaccount"}}, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"namespace": "system", "token": "secret", "ca.crt": "authority"} {
		if got, err := os.ReadFile(filepath.Join(source, name)); err != nil || string(got) != want {
			t.Errorf("%s: found %q (error %v), expected %q", name, got, err, want)
		}
	}
}

// TestVolumeErrors checks the errors for volumes that are not valid.
func TestVolumeErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		volume Volume
		want   string
	}{
		{"relative path", Volume{Path: "etc"}, `volumes[0].path: found "etc"; expected an absolute path other than /`},
		{"root directory", Volume{Path: "/.."}, `volumes[0].path: found "/.."; expected an absolute path other than /`},
		{"file that is missing", Volume{Path: "/a", File: "a"}, `volumes[0].file: found "a"; expected the name of a file of the volume`},
		{"name with a directory", Volume{Path: "/a", Files: map[string]string{"a/b": ""}}, `volumes[0].files: found the name "a/b"`},
		{"unknown template", Volume{Path: "/a", Files: map[string]string{"a": "{{.Port}}"}}, `volumes[0].files: a: found "{{.Port}}"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Operator(Definition{Executable: "/bin/sh", Volumes: []Volume{test.volume}})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, expected %s", err, test.want)
			}
		})
	}
}
