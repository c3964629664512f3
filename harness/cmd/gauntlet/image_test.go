package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-gauntlet/gauntlet/controllers/deploy"
)

// TestImage checks the name of the image that "make image" builds. The manifests in
// controllers/deploy must have the same name.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "image.tar")
	binary := filepath.Join("..", "..", "..", "bin", "workload-controller-manager")
	if _, err := command(t, "image", "--output="+archive, "--label=a=b", binary); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(imageDefault)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"org.opencontainers.image.title":   "workload-controller-manager",
		"org.opencontainers.image.version": revision,
		"a":                                "b",
	} {
		if got := config.Config.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if !bytes.Contains(deploy.Manifest, []byte("image: "+imageDefault+"\n")) {
		t.Errorf("the manifest does not name the image %s", imageDefault)
	}
}

// TestImageThatFails checks that a failed write leaves the existing archive unchanged, and leaves
// no temporary file.
func TestImageThatFails(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "image.tar")
	if err := os.WriteFile(archive, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := command(t, "image", "--output="+archive, archive)
	var unfinished *unfinishedError
	if err == nil || errors.As(err, &unfinished) {
		t.Fatalf("error %v, want one about bad usage that says what is wrong with the binary", err)
	}
	want(t, err.Error(), "expected a Linux executable")
	content, err := os.ReadFile(archive)
	if err != nil || string(content) != "before" {
		t.Errorf("the archive has %q, %v", content, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v; want 1", len(entries), err)
	}
}
