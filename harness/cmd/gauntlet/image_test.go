package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-gauntlet/gauntlet/controllers/deploy"
	"github.com/kube-gauntlet/gauntlet/harness/internal/image"
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
	loaded, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := loaded.ConfigFile()
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

// TestImageToLink checks that the command does not replace a link. It must write the archive to the
// target of the link.
func TestImageToLink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := errors.Join(os.Symlink(target, link), os.WriteFile(target, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "image", "--output="+link, filepath.Join("..", "..", "..", "bin", "workload-controller-manager")); err != nil {
		t.Fatal(err)
	}
	if found, err := os.Readlink(link); err != nil || found != target {
		t.Errorf("link to %q, error %v; want a link to %q", found, err, target)
	}
	if info, err := os.Stat(target); err != nil || info.Size() == 0 {
		t.Errorf("target %v, error %v; want the archive", info, err)
	}
}

// TestImageThatFails checks that a failed write leaves the existing archive unchanged, and leaves
// no temporary file.
func TestImageThatFails(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "image.tar")
	before := make([]byte, 1024) // an archive without files
	if err := os.WriteFile(archive, before, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := command(t, "image", "--output="+archive, file(t, "before"))
	var unfinished *unfinishedError
	if err == nil || errors.As(err, &unfinished) {
		t.Fatalf("error %v, want one about bad usage that says what is wrong with the binary", err)
	}
	want(t, err.Error(), "expected a Linux executable")
	content, err := os.ReadFile(archive)
	if err != nil || !bytes.Equal(content, before) {
		t.Errorf("the archive has %q, %v", content, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v; want 1", len(entries), err)
	}
}

// TestImageOverItsProgram checks that the archive never replaces the program in it. --output may also
// be a link to the program.
func TestImageOverItsProgram(t *testing.T) {
	program := file(t, "precious")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{program, link} {
		_, err := command(t, "image", program, "--output="+output)
		if err == nil || err.Error() != "--output="+output+": found "+program+", which is a program of the image; name another file" {
			t.Errorf("--output=%s: error %v; want that the archive would replace the program", output, err)
		}
		if code := exitCode(exitPass, err); code != exitUsage {
			t.Errorf("--output=%s: exit %d; want %d", output, code, exitUsage)
		}
	}
	flags := &imageFlags{output: link}
	if err := flags.checkPrograms([]image.Spec{{Binary: "none", Others: []string{program}}}); err == nil {
		t.Error("found no error for the second program of an image; want one")
	}
	if content, err := os.ReadFile(program); err != nil || string(content) != "precious" {
		t.Errorf("content %q, error %v; want an unchanged program", content, err)
	}
}

// TestInterruptedImage checks that an interrupt ends the command, also while it waits for the reader
// of a pipe. The command must leave no file.
func TestInterruptedImage(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join("..", "..", "..", "bin", "standin")
	built, err := image.Build(image.Spec{Reference: imageDefault, Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, output := range []string{pipe, filepath.Join(dir, "image.tar")} {
		flags := &imageFlags{output: output}
		var unfinished *unfinishedError
		if err := flags.write(ctx, built); !errors.As(err, &unfinished) || err.Error() != "interrupted" {
			t.Errorf("%s: error %v; want that the command was interrupted", output, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("found the files %v, error %v; want only the pipe", entries, err)
	}
}

// TestImageWithoutProgram checks the exit status if a program of a fleet was not built.
func TestImageWithoutProgram(t *testing.T) {
	gauntlet, err := os.ReadFile(filepath.Join("..", "..", "..", "bin", "standin"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"gauntlet", "workload-controller-manager"} {
		if err := os.WriteFile(filepath.Join(dir, name), gauntlet, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err = command(t, "image", "--fleet", "--virtual", "--programs="+dir, "--output="+filepath.Join(dir, "image.tar"))
	if err == nil || exitCode(exitPass, err) != exitUsage || !strings.Contains(err.Error(), "gauntlet-virtual: no such file or directory; expected an executable file; run `make virtual`") {
		t.Errorf("error %v, exit %d; want one about the missing program, and exit %d", err, exitCode(exitPass, err), exitUsage)
	}
}

// TestImageReplacesArchives checks that "gauntlet image" refuses to replace a file that is no archive.
func TestImageReplacesArchives(t *testing.T) {
	output := file(t, "name: precious")
	_, err := command(t, "image", filepath.Join("..", "..", "..", "bin", "standin"), "--output="+output)
	if err == nil || exitCode(exitPass, err) != exitUsage || !strings.Contains(err.Error(), "--output="+output+": found a file that is no tar archive") {
		t.Errorf("error %v; want that the file is no archive", err)
	}
	if content, err := os.ReadFile(output); err != nil || string(content) != "name: precious" {
		t.Errorf("content %q, error %v; want the file as before", content, err)
	}
}
