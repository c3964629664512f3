// Package image builds container images that contain one static binary and nothing else.
//
// An image is an archive that `docker load` and containerd's `ctr images import`
// accept. Building it requires neither a container engine nor a registry.
//
// Images are reproducible: the same binary and the same Spec result in the same bytes. The file of
// the binary belongs to root, and the process runs as the unprivileged user [User]. A container of
// the image can have a read-only root file system.
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

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// User is the user ID and the group ID of the process in a container, in the form UID:GID. Both are
// numbers, because the image has no /etc/passwd, and because the kubelet can check runAsNonRoot
// only for a numeric user.
const User = "65532:65532"

// binaryBytesMax is the maximum size of a binary in bytes. Write reads the binary into memory.
const binaryBytesMax = 1 << 30

// epoch is the creation time of all images and their files. It is constant, so that images are
// reproducible.
var epoch = time.Unix(0, 0).UTC()

// Spec describes an image that [Build] builds.
type Spec struct {
	// Reference is the name and tag of the image, such as "localhost/relay:dev". Use the registry
	// "localhost": a container engine that does not have the image then cannot pull another image
	// with the same name.
	Reference string
	// Binary is the path of a static Linux executable for amd64 or arm64. The image contains the
	// executable in its root directory, with the same file name. The executable is the entrypoint.
	Binary string
	// Args lists arguments of the entrypoint. The arguments in the specification of a container
	// come after them.
	Args []string
	// Labels has the labels of the image. The keys that OCI defines begin with
	// "org.opencontainers.image.".
	Labels map[string]string
}

// Image is a container image that [Build] built.
type Image struct {
	tag   name.Tag
	image v1.Image
}

// Build builds an image in memory. It returns an error if the reference is invalid or if the
// binary is not a static Linux executable.
func Build(spec Spec) (*Image, error) {
	tag, err := name.NewTag(spec.Reference, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("image reference %q: expected NAME:TAG: %w", spec.Reference, err)
	}
	binary, err := readBinary(spec.Binary)
	if err != nil {
		return nil, fmt.Errorf("building image %s from %s: %w", spec.Reference, spec.Binary, err)
	}
	arch, err := architecture(binary)
	if err != nil {
		return nil, fmt.Errorf("building image %s from %s: %w", spec.Reference, spec.Binary, err)
	}
	image, err := build(spec, binary, arch)
	if err != nil {
		return nil, fmt.Errorf("building image %s: %w", spec.Reference, err)
	}
	return &Image{tag: tag, image: image}, nil
}

// Write writes the image to w in the docker-archive format.
func (i *Image) Write(w io.Writer) error {
	if err := tarball.Write(i.tag, i.image, w); err != nil {
		return fmt.Errorf("writing image %s: %w", i.tag, err)
	}
	return nil
}

// Write builds an image and writes it to w. See [Build].
func Write(w io.Writer, spec Spec) error {
	image, err := Build(spec)
	if err != nil {
		return err
	}
	return image.Write(w)
}

// readBinary reads a regular file of at most [binaryBytesMax] bytes.
func readBinary(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; expected an executable file", inputfile.Reason(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("found a file of mode %s; expected an executable file", info.Mode())
	case info.Size() > binaryBytesMax:
		return nil, fmt.Errorf("found %d MiB; expected at most %d MiB", info.Size()>>20, binaryBytesMax>>20)
	}
	return inputfile.Read(path)
}

// build returns the image for a Spec. The image has one layer, which contains the binary. The
// argument arch is an architecture name of container images, such as "amd64".
func build(spec Spec, binary []byte, arch string) (v1.Image, error) {
	base := filepath.Base(spec.Binary)
	layer, err := layerArchive(base, binary)
	if err != nil {
		return nil, fmt.Errorf("creating the layer: %w", err)
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		// The layer is not compressed, because compressors of different Go releases have different
		// output. The size matters little, because a container engine on the same machine loads the
		// layer.
		Layer:   static.NewLayer(layer, types.DockerUncompressedLayer),
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

// layerArchive returns a tar archive with the binary as a read-only executable in the root directory.
func layerArchive(base string, binary []byte) ([]byte, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
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
	return content.Bytes(), nil
}
