package image

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// several returns the Spec of an image with two executables in the directory /opt/tools.
func several(t *testing.T, reference string) Spec {
	return Spec{
		Reference: reference,
		Binary:    writeFile(t, "manager", elfFile{}.bytes(t)),
		Others:    []string{writeFile(t, "etcd", elfFile{}.bytes(t))},
		Directory: "/opt/tools",
	}
}

// TestSeveralBinaries checks that each executable has a layer of its own. The layer must also
// contain the directories above the executable.
func TestSeveralBinaries(t *testing.T) {
	image := load(t, several(t, reference))
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil || !cmp.Equal(config.Config.Entrypoint, []string{"/opt/tools/manager"}) {
		t.Errorf("entrypoint %q, %v; want /opt/tools/manager", config.Config.Entrypoint, err)
	}
	want := [][]string{{"opt/", "opt/tools/", "opt/tools/etcd"}, {"opt/", "opt/tools/", "opt/tools/manager"}}
	if diff := cmp.Diff(want, filesOf(t, image)); diff != "" {
		t.Errorf("files of the layers (-want +got):\n%s", diff)
	}
}

// TestOneArchitecture checks that Build refuses executables for different architectures.
func TestOneArchitecture(t *testing.T) {
	spec := several(t, reference)
	spec.Binary = writeFile(t, "manager", elfFile{machine: 183}.bytes(t))
	expectError(t, Write(io.Discard, spec), []string{"manager: found an executable for arm64; expected one for amd64"})
}

// TestPush pushes an image to a registry, and pulls the image from this registry.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/tools:v1"
	built, err := Build(several(t, reference))
	if err != nil {
		t.Fatal(err)
	}
	if err := Push(t.Context(), built); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(tag, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(pulled); err != nil {
		t.Error(err)
	}
	server.Close()
	expectError(t, Push(t.Context(), built), []string{"pushing image " + reference})
}

// TestPushIndex pushes images for two architectures to a registry, and pulls each of them.
func TestPushIndex(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/tools:v1"
	var images []*Image
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		built, err := Build(Spec{Reference: reference, Binary: writeFile(t, "manager", elfFile{machine: machine}.bytes(t))})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, built)
	}
	if err := Push(t.Context(), images...); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		pulled, err := remote.Image(tag, remote.WithContext(t.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(pulled); err != nil {
			t.Error(err)
		}
		if config, err := pulled.ConfigFile(); err != nil || config.Architecture != architecture {
			t.Errorf("image for %s: found one for %s, %v", architecture, config.Architecture, err)
		}
	}
	expectError(t, Push(t.Context(), images[0], images[0]), []string{"pushing image " + reference, "two images for amd64"})
}

// filesOf returns for each layer of an image the names of the files in that layer.
func filesOf(t *testing.T, image v1.Image) [][]string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for archive := tar.NewReader(content); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, header.Name)
		}
		all = append(all, names)
		content.Close()
	}
	return all
}
