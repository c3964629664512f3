package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const reference = "localhost/manager:dev"

func TestWrite(t *testing.T) {
	binary := elfFile{}.bytes(t)
	spec := Spec{
		Reference: reference,
		Binary:    writeFile(t, "manager", binary),
		Args:      []string{"relay", "--listen=:1"},
		Labels:    map[string]string{"org.opencontainers.image.revision": "abc"},
	}
	image := load(t, spec)
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User:       "65532:65532",
		WorkingDir: "/",
		Entrypoint: []string{"/manager", "relay", "--listen=:1"},
		Labels:     map[string]string{"org.opencontainers.image.revision": "abc"},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != "amd64" {
		t.Errorf("image for %s/%s, want linux/amd64", config.OS, config.Architecture)
	}
	header, content := onlyFile(t, image)
	if header.Name != "manager" || header.Mode != 0o555 || header.Uid != 0 || header.Gid != 0 {
		t.Errorf("file %s, mode %o, owner %d:%d; want manager, 555, 0:0", header.Name, header.Mode, header.Uid, header.Gid)
	}
	if !bytes.Equal(content, binary) {
		t.Error("the file in the image differs from the binary")
	}
}

func TestWriteForArm64(t *testing.T) {
	config, err := load(t, Spec{Reference: reference, Binary: writeFile(t, "manager", elfFile{machine: 183}.bytes(t))}).ConfigFile()
	if err != nil || config.Architecture != "arm64" {
		t.Errorf("image configuration %+v (error %v), want architecture arm64", config, err)
	}
}

// TestWriteIsReproducible checks that an image does not depend on the executable's directory and
// modification time.
func TestWriteIsReproducible(t *testing.T) {
	archive := func(age time.Duration) []byte {
		path := writeFile(t, "manager", elfFile{}.bytes(t))
		built := time.Now().Add(-age)
		if err := os.Chtimes(path, built, built); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		labels := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
		if err := Write(&out, Spec{Reference: reference, Binary: path, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if !bytes.Equal(archive(0), archive(time.Hour)) {
		t.Error("two archives of the same binary differ")
	}
}

// TestImageOfOurControllers checks that the image of `make image` is small and has a numeric user.
func TestImageOfOurControllers(t *testing.T) {
	const sizeMax = 60e6
	image := load(t, Spec{Reference: reference, Binary: filepath.Join("..", "..", "..", "bin", "workload-controller-manager")})
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != User || !cmp.Equal(config.Config.Entrypoint, []string{"/workload-controller-manager"}) {
		t.Errorf("user %q, entrypoint %q; want user %q and the binary", config.Config.User, config.Config.Entrypoint, User)
	}
	if header, _ := onlyFile(t, image); header.Size >= sizeMax {
		t.Errorf("binary in the image has %d bytes, want less than %d", header.Size, int64(sizeMax))
	}
}

func TestWriteErrors(t *testing.T) {
	static := writeFile(t, "static", elfFile{}.bytes(t))
	huge := writeFile(t, "huge", nil)
	if err := os.Truncate(huge, binaryBytesMax+1<<20); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		spec Spec
		want []string
	}{
		{"no reference", Spec{Binary: static}, []string{`image reference ""`, "expected REGISTRY/NAME:TAG"}},
		{"no tag", Spec{Reference: "localhost/manager", Binary: static}, []string{`image reference "localhost/manager"`, "expected REGISTRY/NAME:TAG"}},
		{"a digest", Spec{Reference: "localhost/manager@sha256:" + strings.Repeat("0", 64), Binary: static}, []string{"expected REGISTRY/NAME:TAG"}},
		{"no file", Spec{Reference: reference, Binary: "absent"}, []string{reference, "absent: no such file"}},
		{"a directory", Spec{Reference: reference, Binary: filepath.Dir(static)}, []string{filepath.Dir(static) + ": found a directory; expected an executable file"}},
		{"too big", Spec{Reference: reference, Binary: huge}, []string{huge + ": found an executable of 1025 MiB; expected at most 1024 MiB"}},
		{"not an executable", Spec{Reference: reference, Binary: writeFile(t, "script", []byte("#!/bin/sh\n"))}, []string{"script: found no ELF file; expected a Linux executable"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			expectError(t, Write(io.Discard, test.spec), test.want)
		})
	}
}

func TestWriteReturnsErrorOfWriter(t *testing.T) {
	diskFull := errors.New("disk full")
	err := Write(writerFunc(func([]byte) (int, error) { return 0, diskFull }),
		Spec{Reference: reference, Binary: writeFile(t, "manager", elfFile{}.bytes(t))})
	if !errors.Is(err, diskFull) {
		t.Errorf("error %v, want %v", err, diskFull)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func expectError(t *testing.T, err error, want []string) {
	t.Helper()
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want one that contains %q", err, text)
		}
	}
}

// writeFile writes a file to a new temporary directory and returns its path.
func writeFile(t *testing.T, base string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), base)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load writes an image to an archive and reads the archive, as a container engine does.
func load(t *testing.T, spec Spec) v1.Image {
	t.Helper()
	var archive bytes.Buffer
	if err := Write(&archive, spec); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(spec.Reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.Image(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, &tag)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// onlyFile returns the header and the content of the only file of an image. It fails the test if
// the image has more files or layers.
func onlyFile(t *testing.T, image v1.Image) (*tar.Header, []byte) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (error %v), want 1", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	archive := tar.NewReader(content)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the layer contains a second file: %v (error %v)", next, err)
	}
	return header, file
}
