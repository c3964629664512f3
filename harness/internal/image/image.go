// Package image builds container images that contain only static executables.
//
// An image can be written as an archive that "docker load" and containerd's "ctr images import"
// accept. It can also be pushed to a registry. Building an image requires neither a container
// engine nor a registry.
//
// Images are reproducible: the same executables and the same Spec give the same bytes. The files
// belong to root, and the process runs as the unprivileged user [User]. A container can have a
// read-only root file system.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// User is the user ID and the group ID of the process in a container, in the form UID:GID. These
// are numbers, because the image has no /etc/passwd. The kubelet can check runAsNonRoot only for a
// numeric user.
const User = "65532:65532"

// binaryBytesMax is the maximum size of an executable in bytes. The limit exists because Build
// reads executables into memory.
const binaryBytesMax = 1 << 30

// epoch is the creation time of all images and their files. A constant time makes images
// reproducible.
var epoch = time.Unix(0, 0).UTC()

// Spec describes an image that [Build] builds.
type Spec struct {
	// Reference is the name and tag of the image, such as "localhost/relay:dev". Use the registry
	// "localhost" for an image that is not pushed. A container engine that lacks the image then
	// cannot pull another one by this name.
	Reference string
	// Binary is the path of a static Linux executable for amd64 or arm64. In the image, the
	// executable has the same file name, and is the entrypoint.
	Binary string
	// Directory is the directory in the image that contains the executables. If it is empty, they
	// are in the root directory.
	Directory string
	// Others has the paths of further executables for the same architecture. Each file has its own
	// layer. If several images contain the file, a registry stores it only once.
	Others []string
	// Args has arguments of the entrypoint. The arguments in a container's specification follow
	// these arguments.
	Args []string
	// Labels has the labels of the image. Keys that OCI defines begin with
	// "org.opencontainers.image.".
	Labels map[string]string
}

// Image is a container image in memory, which [Build] has built.
type Image struct {
	tag   name.Tag
	image v1.Image
}

// Build builds an image in memory. It returns an error if the reference is invalid or if an
// executable is not a static Linux executable.
func Build(spec Spec) (*Image, error) {
	tag, err := name.NewTag(spec.Reference, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("image reference %q: expected REGISTRY/NAME:TAG, such as localhost/manager:dev, with a NAME in lower case, and a TAG of at most 128 letters, digits, \"_\", \".\" and \"-\"", spec.Reference)
	}
	image, err := build(spec)
	if err != nil {
		return nil, fmt.Errorf("building image %s: %w", spec.Reference, err)
	}
	return &Image{tag: tag, image: image}, nil
}

// Write writes the image to w as an archive in the docker-archive format.
func (i *Image) Write(w io.Writer) error {
	if err := tarball.Write(i.tag, i.image, w); err != nil {
		return fmt.Errorf("writing image %s: %w", i.tag, err)
	}
	return nil
}

// Write builds an image as [Build] does, and writes it to w in the docker-archive format.
func Write(w io.Writer, spec Spec) error {
	image, err := Build(spec)
	if err != nil {
		return err
	}
	return image.Write(w)
}

// Push sends images to the registry that their reference names. It uses the credentials of "docker
// login". The images must have the same reference and different architectures. If there are several,
// the reference names an index, and a container engine pulls the image for its own architecture.
func Push(ctx context.Context, images ...*Image) error {
	tag := images[0].tag
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if len(images) == 1 {
		image, err := compress(images[0].image)
		if err == nil {
			err = remote.Write(tag, image, options...)
		}
		return pushError(tag, err)
	}
	index, err := indexOf(images)
	if err == nil {
		err = remote.WriteIndex(tag, index, options...)
	}
	return pushError(tag, err)
}

func pushError(tag name.Tag, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pushing image %s: %w", tag, err)
}

// indexOf returns an index of images for different architectures.
func indexOf(images []*Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	found := map[string]bool{}
	for _, i := range images {
		image, err := compress(i.image)
		if err != nil {
			return nil, err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		if found[config.Architecture] {
			return nil, fmt.Errorf("found two images for %s; expected one", config.Architecture)
		}
		found[config.Architecture] = true
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}},
		})
	}
	return index, nil
}

// compress returns the image with compressed layers, because clients of registries expect
// compressed layers.
func compress(image v1.Image) (v1.Image, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for i, layer := range layers {
		if layers[i], err = tarball.LayerFromOpener(layer.Uncompressed); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	compressed, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(compressed, config)
}

// readBinary reads an executable file. It returns an error if the file is larger than
// [binaryBytesMax] bytes.
func readBinary(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; expected an executable file", inputfile.Reason(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("found %s; expected an executable file", inputfile.Describe(info.Mode()))
	case info.Size() > binaryBytesMax:
		return nil, fmt.Errorf("found an executable of %d MiB; expected at most %d MiB", info.Size()>>20, binaryBytesMax>>20)
	}
	return inputfile.Read(path)
}

// build returns the image that a Spec describes. Each executable has its own layer. The last layer
// has the entrypoint.
func build(spec Spec) (v1.Image, error) {
	image, arch := empty.Image, ""
	for _, file := range append(slices.Clone(spec.Others), spec.Binary) {
		layer, of, err := binaryLayer(spec.Directory, file)
		if err != nil {
			return nil, fmt.Errorf("adding %s: %w", file, err)
		}
		if arch != "" && arch != of {
			return nil, fmt.Errorf("adding %s: found an executable for %s; expected one for %s, like the other executables of the image", file, of, arch)
		}
		arch = of
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "gauntlet", Comment: filepath.Base(file)},
		})
		if err != nil {
			return nil, fmt.Errorf("adding the layer of %s: %w", file, err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: epoch}
	config.Config = v1.Config{
		User:       User,
		WorkingDir: "/",
		Entrypoint: append([]string{inImage(spec.Directory, spec.Binary)}, spec.Args...),
		Labels:     maps.Clone(spec.Labels),
	}
	return mutate.ConfigFile(image, config)
}

// inImage returns the path in the image of an executable that the image contains. The argument file
// is the path of the executable on this machine. The argument dir is the directory in the image.
func inImage(dir, file string) string { return path.Join("/", dir, filepath.Base(file)) }

// binaryLayer returns a layer with one executable, and the executable's architecture, such as
// "amd64".
//
// The layer is not compressed, because the output of compressors differs between Go releases. The
// size matters little, because a container engine on the same machine loads the layer.
func binaryLayer(dir, file string) (layer v1.Layer, arch string, err error) {
	binary, err := readBinary(file)
	if err != nil {
		return nil, "", err
	}
	if arch, err = architecture(binary); err != nil {
		return nil, "", err
	}
	content, err := layerArchive(inImage(dir, file), binary)
	if err != nil {
		return nil, "", fmt.Errorf("creating the layer: %w", err)
	}
	return static.NewLayer(content, types.DockerUncompressedLayer), arch, nil
}

// layerArchive returns a tar archive with a read-only executable. The argument file is the path of
// the executable in the archive. The archive also has the directories above the executable.
func layerArchive(file string, binary []byte) ([]byte, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	names := strings.Split(strings.TrimPrefix(file, "/"), "/")
	for i := range names[:len(names)-1] {
		dir := strings.Join(names[:i+1], "/") + "/"
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
	}
	err := archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     strings.Join(names, "/"),
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
