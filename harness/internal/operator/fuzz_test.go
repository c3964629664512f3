package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad checks that Load panics for no subject file and no manifest. An error of Load must
// name the subject file.
func FuzzLoad(f *testing.F) {
	const subject = "subject: {exec: run, manifests: [manifest.yaml]}\n"
	f.Add(subject, widgets)
	f.Add(subject, widgets+"---\n"+roles)
	f.Add("subject:\n  exec: run\n  manifests: [manifest.yaml]\n  args: ['{{.Kubeconfig}}']\n  env: {A: b}\n", widgets+"---\n"+roles+"---\n"+deployment)
	f.Add("subject: {exec: run}\noperator:\n  kinds: [{apiVersion: a.b/v1, kind: A}]\n  controllers: [{name: a, kind: A, watches: [A]}]\n", "")
	f.Add(subject, `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap"}]}`)
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, subject, manifest string) {
		if strings.Contains(subject, "module") {
			t.Skip("Load would build a module")
		}
		path := write(t, dir, "subject.yaml", subject)
		write(t, dir, "manifest.yaml", manifest)
		if _, err := Load(t.Context(), path); err != nil && !strings.Contains(err.Error(), "subject.yaml") {
			t.Errorf("the error does not name the subject file: %v", err)
		}
	})
}
