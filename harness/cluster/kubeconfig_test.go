package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestLoadErrors checks that the error about a kubeconfig names the file, what is wrong, and what is
// expected.
func TestLoadErrors(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // otherwise, the pod's own cluster would be used
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const entries = "clusters: [{name: c, cluster: {server: https://a}}, {name: d, cluster: {server: foo bar}}, {name: e, cluster: {server: ftp://a}}, {name: f, cluster: {server: https://a, certificate-authority-data: Zm9v}}, {name: g, cluster: {server: https://a:99999}}]\n" +
		"contexts: [{name: b, context: {cluster: c}}, {name: a, context: {cluster: c}}, {name: bad, context: {cluster: d}}, {name: ftp, context: {cluster: e}}, {name: ca, context: {cluster: f}}, {name: lost, context: {cluster: nope}}, {name: port, context: {cluster: g}}, {name: token, context: {cluster: c, user: t}}, {name: user, context: {cluster: c, user: u}}, {name: nobody, context: {cluster: c, user: v}}]\n" +
		"users: [{name: t, user: {token: \"a\\nb\"}}, {name: u, user: {client-certificate: /nope, client-key: /none}}]\n"
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	secret := write("secret", "clusters: [{name: c, cluster: {server: https://a}}]\ncurrent-context: x\n"+
		"contexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {tokenFile: "+pipe+"}}]\n")
	empty := write("empty", "contexts: []\n")
	several, broken, absent := write("several", entries), write("broken", "clusters: 7\n"), filepath.Join(dir, "absent")
	for _, test := range []struct{ name, environment, kubeconfig, context, want string }{
		{"no file", absent, "", "", "loading the kubeconfig " + absent + ": no such file; set --kubeconfig or KUBECONFIG to the path of a kubeconfig"},
		{"no file, but a context", absent, "", "a", "loading the kubeconfig " + absent + ": no such file; set"},
		{"no context", empty, "", "", "loading the kubeconfig " + empty + ": found no context; set"},
		{"no such cluster", several, "", "lost", "loading the kubeconfig " + several + `: context "lost": cluster: found "nope", which does not exist; expected`},
		{"no such user", several, "", "nobody", "loading the kubeconfig " + several + `: context "nobody": user: found "v", which does not exist; expected the name of a user in the kubeconfig`},
		{"no URL", several, "", "bad", "loading the kubeconfig " + several + `: server: found "foo bar"; expected the URL of an API server`},
		{"no scheme of an API server", several, "", "ftp", "loading the kubeconfig " + several + `: server: found "ftp://a"; expected the URL of an API server`},
		{"no port", several, "", "port", "loading the kubeconfig " + several + `: server: found "https://a:99999"; expected the URL of an API server`},
		{"no certificate", several, "", "ca", "loading the kubeconfig " + several + ": unable to load root certificates"},
		{"no files of the user", several, "", "user", "loading the kubeconfig " + several + ": client-cert of u: /nope: no such file or directory; expected a readable file, client-key of u: /none: no such file"},
		{"a line break in a token", several, "", "token", "loading the kubeconfig " + several + ": token: found a line break or another control character"},
		{"no path", ":", "", "", "loading the kubeconfig: found no path in KUBECONFIG; set"},
		{"a pipe", pipe, "", "", "loading the kubeconfig " + pipe + ": found a pipe; expected a regular file; set"},
		{"a device after a file", several + ":/dev/zero", "", "", "loading the kubeconfig /dev/zero: found a device; expected a regular file; set"},
		{"a directory", dir, "", "", "loading the kubeconfig " + dir + ": found a directory; expected a regular file; set"},
		{"a token in a pipe", secret, "", "", "loading the kubeconfig " + secret + ": " + pipe + ": found a pipe; expected a regular file"},
		{"no file of the flag", several, absent, "", "kubeconfig " + absent + ": file does not exist; expected the path"},
		{"no such context", several, "", "nosuch", "loading the kubeconfig " + several + `: context "nosuch" does not exist; expected a context of this file: a, b, bad, ca, ftp, lost, nobody, port, token or user`},
		{"no current context", absent, several, "", "loading the kubeconfig " + several + ": found no current context; set --context to a context of this file: a, b, bad, ca, ftp, lost, nobody, port, token or user"},
		{"not a kubeconfig", absent, broken, "", "loading the kubeconfig " + broken + ": found number at clusters; expected a list; set"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.environment)
			_, _, err := Existing{Kubeconfig: test.kubeconfig, Context: test.context}.Load()
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

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
