// Package image makes container images: a static binary and nothing else, as an
// archive that `docker load` and containerd's `ctr images import` take. It needs
// no container engine and no registry.
//
// An image is reproducible: the same binary and the same Spec give the same
// bytes, whenever and wherever. It says nothing of how a container is run; the
// binary belongs to root and the user is another, so that it runs on a root
// file system that is read-only, without privileges.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is who the binary runs as, user and group. It is numeric because there is
// no /etc/passwd, and because a kubelet that is told runAsNonRoot believes only
// numbers.
const User = "65532:65532"

// binaryMax bounds the size of a binary, in bytes: it is read into memory.
const binaryMax = 1 << 30

// epoch is the time of everything in an image. A real one would make every
// image another.
var epoch = time.Unix(0, 0).UTC()

// Spec says what an image is made of.
type Spec struct {
	// Reference is the image's name and tag, such as "localhost/relay:dev". With
	// the registry "localhost" nobody pulls something else of that name when the
	// image is not loaded.
	Reference string
	// Binary is the file of a static Linux executable, for amd64 or arm64. In the
	// image it stands in the root under its base name, and is the entrypoint.
	Binary string
	// Args come right behind the binary, in front of a container's own arguments.
	Args []string
	// Labels of the image; the keys that tools know begin with
	// "org.opencontainers.image.".
	Labels map[string]string
}

// Write writes the image to w as a docker-archive. It fails when the binary
// could not run alone in an image.
func Write(w io.Writer, spec Spec) error {
	tag, err := name.NewTag(spec.Reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image reference %q: expected NAME:TAG: %w", spec.Reference, err)
	}
	binary, err := read(spec.Binary)
	if err != nil {
		return fmt.Errorf("making image %s: %w", spec.Reference, err)
	}
	arch, err := architecture(binary)
	if err != nil {
		return fmt.Errorf("making image %s of %s: %w", spec.Reference, spec.Binary, err)
	}
	image, err := build(spec, binary, arch)
	if err != nil {
		return fmt.Errorf("making image %s: %w", spec.Reference, err)
	}
	if err := tarball.Write(tag, image, w); err != nil {
		return fmt.Errorf("writing image %s: %w", spec.Reference, err)
	}
	return nil
}

// read returns the content of a regular file.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: expected a file, found mode %s", path, info.Mode())
	case info.Size() > binaryMax:
		return nil, fmt.Errorf("%s: expected at most %d MiB, found %d", path, binaryMax>>20, info.Size()>>20)
	}
	return os.ReadFile(path)
}

// build puts one layer on nothing and says how it is run.
func build(spec Spec, binary []byte, arch string) (v1.Image, error) {
	base := filepath.Base(spec.Binary)
	packed, err := pack(base, binary)
	if err != nil {
		return nil, fmt.Errorf("packing the layer: %w", err)
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		// Not compressed: the archive goes no further than to the next engine, and
		// compressors differ between releases of Go.
		Layer:   static.NewLayer(packed, types.DockerUncompressedLayer),
		History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "gauntlet", Comment: base},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: epoch}
	config.Config = v1.Config{
		User:       User,
		WorkingDir: "/",
		Entrypoint: append([]string{"/" + base}, spec.Args...),
		Labels:     maps.Clone(spec.Labels),
	}
	return mutate.ConfigFile(image, config)
}

// pack returns the tar archive of one executable in the root, which nobody may
// change.
func pack(base string, binary []byte) ([]byte, error) {
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	err := archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     base,
		Size:     int64(len(binary)),
		Mode:     0o555,
		ModTime:  epoch,
		Format:   tar.FormatUSTAR,
	})
	if err != nil {
		return nil, err
	}
	if _, err := archive.Write(binary); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
