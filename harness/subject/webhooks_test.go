package subject

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

// object parses a manifest.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// hooks is a webhook configuration. Two of its webhooks name a Service, and one has a URL.
const hooks = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validate}
webhooks:
  - {name: a, clientConfig: {service: {name: webhook, namespace: system, path: /validate}, caBundle: b2xk}}
  - {name: b, clientConfig: {service: {name: webhook}}}
  - {name: c, clientConfig: {url: "https://example.com/mutate?x=1"}}
`

// converted is a CustomResourceDefinition whose conversion webhook has neither a Service nor a
// URL.
const converted = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}}
`

// serve starts Webhooks for a definition. The test stops them at its end.
func serve(t *testing.T, d *Definition, home string) *Webhooks {
	t.Helper()
	w, err := ServeWebhooks(t.Context(), d, home, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestWebhookObjects checks the addresses and certificate authorities that Objects sets.
func TestWebhookObjects(t *testing.T) {
	d := &Definition{Namespace: "own", Args: []string{"{{.Webhook}}"}, Objects: []*unstructured.Unstructured{
		object(t, hooks), object(t, converted),
		object(t, "{apiVersion: v1, kind: Service, metadata: {name: webhook, namespace: system}, spec: {clusterIP: None}}"),
		object(t, "{apiVersion: v1, kind: Service, metadata: {name: metrics}}"),
	}}
	w := serve(t, d, t.TempDir())
	var got []string
	for _, o := range w.Objects() {
		for _, config := range clientConfigs(o) {
			if config["caBundle"] == "b2xk" || config["caBundle"] == nil {
				t.Errorf("%s: caBundle %v; want that of the created authority", o.GetKind(), config["caBundle"])
			}
			delete(config, "caBundle")
			got = append(got, fmt.Sprint(config))
		}
		if o.GetKind() == "Service" {
			got = append(got, fmt.Sprint(o.GetNamespace(), "/", o.GetName(), " ", o.Object["spec"]))
		}
	}
	port := fmt.Sprint(w.listener.Addr().(*net.TCPAddr).Port)
	want := []string{
		"map[service:map[name:webhook namespace:system path:/validate port:" + port + "]]",
		"map[service:map[name:webhook namespace:own port:" + port + "]]",
		"map[url:https://127.0.0.1:" + port + "/mutate?x=1]",
		"map[url:https://127.0.0.1:" + port + "/convert]",
		"/metrics <nil>",
		"own/webhook map[externalName:127.0.0.1 type:ExternalName]",
		"system/webhook map[externalName:127.0.0.1 type:ExternalName]",
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := fmt.Sprint(d.Objects[0].Object); !strings.Contains(text, "caBundle:b2xk") || strings.Contains(text, "port") {
		t.Errorf("the definition changed to %s", text)
	}
}

// TestWebhookConnections checks that each connection reaches a replica that listens. If no replica
// listens, the client must get an error at once.
func TestWebhookConnections(t *testing.T) {
	home := t.TempDir()
	d := &Definition{Namespace: "own", Args: []string{"{{.WebhookPort}}"}, Objects: []*unstructured.Unstructured{object(t, hooks)}}
	w := serve(t, d, home)
	ca, err := os.ReadFile(filepath.Join(home, "k8s-webhook-server/serving-certs/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	// The client verifies the name of the Service, as the API server does.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "webhook.system.svc"}}}
	get := func() error {
		response, err := client.Get("https://" + w.listener.Addr().String())
		if err != nil {
			return err
		}
		return response.Body.Close()
	}

	if err := get(); err == nil {
		t.Error("found an answer without a replica")
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "tls.crt"), filepath.Join(w.dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()
	w.add("subject-0", "127.0.0.1:1") // nothing listens there
	w.add("subject-1", server.Listener.Addr().String())
	for range 3 { // each begins with another replica
		if err := get(); err != nil {
			t.Error(err)
		}
	}
	if err := w.Listening(t.Context()); err == nil || !strings.Contains(err.Error(), "subject-0 does not serve the webhooks of the subject's manifests on 127.0.0.1:1") {
		t.Errorf("Listening returned %v; want that subject-0 does not listen", err)
	}
	w.add("subject-0", server.Listener.Addr().String())
	if err := w.Listening(t.Context()); err != nil {
		t.Error(err)
	}
	server.Close()
	if err := get(); err == nil {
		t.Error("found an answer after the replica ended")
	}
}

// TestSharedWebhookPort checks that two runs do not use one port at the same time.
func TestSharedWebhookPort(t *testing.T) {
	d := &Definition{Namespace: "own", WebhookPort: 9000 + os.Getpid()%500, Objects: []*unstructured.Unstructured{object(t, hooks)}}
	if _, err := ServeWebhooks(t.Context(), d, t.TempDir(), 2); err == nil || !strings.Contains(err.Error(), "so 2 replicas cannot run on one machine") {
		t.Errorf("error %v; want that two replicas cannot share a port", err)
	}
	own := *d
	own.Args = []string{"--port={{.WebhookPort}}"}
	if err := errors.Join(d.CheckReplicas(1), own.CheckReplicas(2)); err != nil {
		t.Errorf("error %v; want that one replica, or replicas with their own ports can run", err)
	}
	first, err := ServeWebhooks(t.Context(), d, t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("too late"))
	defer cancel()
	if _, err := ServeWebhooks(ctx, d, t.TempDir(), 1); err == nil || !strings.Contains(err.Error(), "until no other run on this machine uses") {
		t.Errorf("error %v; want one that names the other run", err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	serve(t, d, t.TempDir())

	for _, own := range []Definition{{Args: []string{"--port={{.WebhookPort}}"}}, {Env: map[string]string{"AT": "{{.Webhook}}"}}, {Args: []string{"--at={{.Address}}:9443"}}, {Files: map[string]string{"a": "port: {{.WebhookPort}}"}}} {
		if own.sharesWebhookPort() {
			t.Errorf("%v %v: found a shared port", own.Args, own.Env)
		}
	}
}

// TestCopySecret checks the files of the serving certificate. They must change when the program
// changes the Secret that contains the certificate.
func TestCopySecret(t *testing.T) {
	d := &Definition{Namespace: "own", CertificateSecret: types.NamespacedName{Namespace: "own", Name: "cert"}, Args: []string{"{{.Webhook}}"}, Objects: []*unstructured.Unstructured{object(t, hooks)}}
	w := serve(t, d, t.TempDir())
	if entries, err := os.ReadDir(w.dir); err != nil || len(entries) != 0 {
		t.Errorf("found the files %v, %v; want none before the program creates its certificate", entries, err)
	}
	if bundle := clientConfigs(w.Objects()[0])[0]["caBundle"]; bundle != "b2xk" {
		t.Errorf("caBundle %v; want that of the manifest", bundle)
	}
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "cert", ResourceVersion: "1"}})
	w.CopySecret(t.Context(), client)
	for version, content := range []string{2: "first", 3: "second"} {
		if content == "" {
			continue
		}
		_, err := client.CoreV1().Secrets("own").Update(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "cert", ResourceVersion: fmt.Sprint(version)}, Data: map[string][]byte{"tls.crt": []byte(content)},
		}, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for found := ""; found != content; {
			select {
			case <-time.After(time.Millisecond):
			case <-t.Context().Done():
				t.Fatalf("found %q; want %q", found, content)
			}
			got, _ := os.ReadFile(filepath.Join(w.dir, "tls.crt"))
			found = string(got)
		}
	}
}

// TestFilesOfTheProgram checks which files change when the program itself has written some of them.
func TestFilesOfTheProgram(t *testing.T) {
	for name, test := range map[string]struct {
		change func(dir string) error // what the program does between two writes
		want   map[string]string
	}{
		"nothing":        {func(string) error { return nil }, map[string]string{"tls.crt": "new", "tls.key": "new"}},
		"removes a file": {func(dir string) error { return os.Remove(filepath.Join(dir, "tls.key")) }, map[string]string{"tls.crt": "new", "tls.key": "new"}},
		"adds a file": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("own"), 0o600) },
			map[string]string{"tls.crt": "old", "tls.key": "old", "ca.pem": "own"}},
		"writes atomically": {func(dir string) error {
			own, path := filepath.Join(dir, "..data"), filepath.Join(dir, "tls.crt")
			return errors.Join(os.WriteFile(own, []byte("own"), 0o600), os.Remove(path), os.Symlink("..data", path))
		}, map[string]string{"..data": "own", "tls.crt": "own", "tls.key": "old"}},
		"replaces a file": {func(dir string) error {
			path := filepath.Join(dir, "tls.crt")
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("own"), 0o644))
		}, map[string]string{"tls.crt": "own", "tls.key": "old"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Webhooks{dir: t.TempDir(), written: map[string]os.FileInfo{}}
			write := func(content string) error {
				return w.write(map[string][]byte{"tls.crt": []byte(content), "tls.key": []byte(content)})
			}
			if err := errors.Join(write("old"), test.change(w.dir), write("new")); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			entries, err := os.ReadDir(w.dir)
			for _, entry := range entries {
				content, readErr := os.ReadFile(filepath.Join(w.dir, entry.Name()))
				got[entry.Name()], err = string(content), errors.Join(err, readErr)
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("error %v, files -want +got:\n%s", err, diff)
			}
		})
	}
	t.Run("creates a file meanwhile", func(t *testing.T) {
		w, path := &Webhooks{written: map[string]os.FileInfo{}}, filepath.Join(t.TempDir(), "tls.crt")
		if err := os.Symlink("..data/tls.crt", path); err != nil {
			t.Fatal(err)
		}
		if err := w.writeFile(path, nil); !errors.Is(err, os.ErrExist) {
			t.Errorf("error %v; want that the file exists", err)
		}
		if target, err := os.Readlink(path); err != nil || target != "..data/tls.crt" {
			t.Errorf("found the link %q, error %v; want that of the program", target, err)
		}
	})
}

// TestDefinitionFiles checks the files of a replica.
func TestDefinitionFiles(t *testing.T) {
	d := &Definition{Namespace: "own", Files: map[string]string{"config.yaml": "port: {{.WebhookPort}}\nnamespace: {{.Namespace}}\n"}}
	dir := filepath.Join(t.TempDir(), "files")
	if err := d.writeFiles(Values{WebhookPort: 12345, Files: dir}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if want := "port: 12345\nnamespace: own\n"; err != nil || string(content) != want {
		t.Errorf("found %q, %v; want %q", content, err, want)
	}
}
