package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/harness/internal/image"
	"github.com/kube-gauntlet/gauntlet/harness/internal/objectstore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// imageDefault is the name of the image in the manifests of controllers/deploy. Its registry host
// is localhost, so that no node pulls an image with this name from a public registry.
const imageDefault = "localhost/workload-controller-manager:dev"

// imageFlags has the values of the flags of "gauntlet image".
type imageFlags struct {
	spec                         image.Spec
	output                       string
	labels                       map[string]string
	fleet, push                  bool
	withVirtual, withObjectStore bool     // with fleet: also the programs of the provider virtual and of object stores
	programs                     []string // with fleet: the directories with gauntlet's programs; empty for that of the running gauntlet
}

func newImage() *cobra.Command {
	var flags imageFlags
	cmd := &cobra.Command{
		Use:   "image [BINARY]",
		Short: "Write a container image that contains one binary, or the programs of a fleet",
		Long: `Write a container image that contains only BINARY, a static Linux executable. The
archive is in the format that "docker load", "kind load image-archive" and "ctr images
import" accept. The image runs as user ` + image.User + ` and needs no writable file
system.

With --fleet and without BINARY, the image contains this gauntlet, our controllers,
etcd, Kubernetes and KWOK, in ` + fleet.ProgramDirectory + `. "gauntlet fleet run" needs such an image.
With --virtual, it also contains the program that "make virtual" built, and with
--object-store the program that "make objectstore" built.

With --programs, gauntlet and our controllers come from another directory, and may be
for another architecture. The command then builds the other programs for it. If you
repeat the flag, the command pushes one image for all these architectures.

With --push, the command sends the image to the registry of --reference instead, with
the credentials of "docker login".`,
		Example: `  gauntlet image ./my-kcm --output=my-kcm.tar
  gauntlet image --fleet --output=fleet.tar
  gauntlet image --fleet --push --reference=registry.example/gauntlet-fleet:v1
  gauntlet image --fleet --push --reference=registry.example/gauntlet-fleet:v1 --programs=bin --programs=out/arm64`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.output, "output", "image.tar", "the archive `file` to write")
	f.StringVar(&flags.spec.Reference, "reference", imageDefault, "the name and tag of the image; with --fleet, the default is "+fleetImageDefault)
	f.BoolVar(&flags.fleet, "fleet", false, "put the programs of a fleet into the image")
	f.BoolVar(&flags.withVirtual, "virtual", false, "with --fleet, also put the program of the provider virtual into the image")
	f.BoolVar(&flags.withObjectStore, "object-store", false, "with --fleet, also put the program for \"gauntlet fleet run --store\" into the image")
	f.StringArrayVar(&flags.programs, "programs", nil, "with --fleet, a `directory` with gauntlet and our controllers; repeat it for several architectures (default: the directory of this gauntlet)")
	f.BoolVar(&flags.push, "push", false, "send the image to its registry; write no archive")
	f.StringToStringVar(&flags.labels, "label", nil, "a `KEY=VALUE` label of the image, such as org.opencontainers.image.revision; repeatable")
	return cmd
}

// run builds an image for each architecture, and writes or pushes them.
func (f *imageFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return err
	}
	specs := []image.Spec{f.spec}
	if f.fleet {
		var err error
		if specs, err = f.fleetSpecs(cmd); err != nil {
			return err
		}
	} else {
		specs[0].Binary = args[0]
	}
	if err := f.checkPrograms(specs); err != nil {
		return err
	}
	var images []*image.Image
	for _, spec := range specs {
		spec.Labels = map[string]string{
			"org.opencontainers.image.title":   filepath.Base(spec.Binary),
			"org.opencontainers.image.version": revision,
		}
		maps.Copy(spec.Labels, f.labels)
		built, err := orInterrupted(cmd.Context(), func() (*image.Image, error) { return image.Build(spec) })
		if err != nil {
			return err
		}
		images = append(images, built)
	}
	if f.push {
		if err := image.Push(cmd.Context(), images...); err != nil {
			return &unfinishedError{err}
		}
		return nil
	}
	return f.write(cmd.Context(), images[0])
}

// write writes the archive of an image. If ctx ends first, it returns an error and leaves an
// earlier archive unchanged.
func (f *imageFlags) write(ctx context.Context, built *image.Image) error {
	write := func() (struct{}, error) {
		return struct{}{}, outputfile.ReplaceWith(f.output, func(w io.Writer) error {
			return built.Write(&interruptibleWriter{ctx, w})
		})
	}
	var err error
	if info, statErr := os.Stat(f.output); statErr == nil && !info.Mode().IsRegular() {
		_, err = orInterrupted(ctx, write) // a pipe or a device, whose reader may never read
	} else {
		_, err = write()
	}
	if stopped := interrupted(ctx); err != nil && stopped != nil {
		return stopped
	}
	if err != nil {
		return &unfinishedError{fmt.Errorf("writing the image archive: %w", err)}
	}
	return nil
}

// checkPrograms returns an error if the archive would replace a program of the images. It returns one
// also for any other file that is no archive.
func (f *imageFlags) checkPrograms(specs []image.Spec) error {
	if f.push {
		return nil
	}
	for _, spec := range specs {
		for _, program := range append([]string{spec.Binary}, spec.Others...) {
			if sameFile(program, f.output) {
				return fmt.Errorf("--output=%s: found %s, which is a program of the image; name another file", f.output, program)
			}
		}
	}
	return checkArchive(f.output)
}

// check returns an error if the argument and the flags contradict each other, or if a value is
// invalid.
func (f *imageFlags) check(cmd *cobra.Command, args []string) error {
	_, emptyKey := f.labels[""]
	switch {
	case f.fleet && len(args) == 1:
		return fmt.Errorf("image: found the argument %q and --fleet; use one of them", args[0])
	case !f.fleet && len(args) == 0:
		return errors.New("image: found no argument; expected BINARY, or --fleet")
	case !f.fleet && (f.withVirtual || f.withObjectStore || len(f.programs) > 0):
		return errors.New("image: found --virtual, --object-store or --programs without --fleet; add --fleet, or omit them")
	case len(f.programs) > 1 && !f.push:
		return errors.New("image: found --programs several times without --push; an archive has one architecture: add --push, or write an archive for each")
	case f.push && cmd.Flags().Changed("output"):
		return errors.New("image: found --push and --output; with --push, the command writes no archive: omit one of the two flags")
	case emptyKey:
		return errors.New("--label: found an empty key; expected KEY=VALUE")
	}
	if f.push {
		return nil
	}
	return checkFile("output", f.output)
}

// checkArchive returns an error if the value of --output is a file that is no tar archive. The
// command replaces an earlier archive, and no other file.
func checkArchive(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // a new file, or a device
	}
	file, err := inputfile.Open(path)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer file.Close()
	if _, err := tar.NewReader(file).Next(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("--output=%s: found a file that is no tar archive; expected another path, because the archive would replace this file", path)
	}
	return nil
}

// fleetSpecs returns the images of a fleet, one for each directory of --programs. Without this flag,
// it returns one image with the running gauntlet. It then builds our controllers if they are not
// beside it.
func (f *imageFlags) fleetSpecs(cmd *cobra.Command) ([]image.Spec, error) {
	if !cmd.Flags().Changed("reference") {
		f.spec.Reference = fleetImageDefault
	}
	if len(f.programs) == 0 {
		gauntlet, ours, err := executables(cmd.Context(), subject.Ours)
		if err != nil {
			return nil, &unfinishedError{err}
		}
		architecture, err := image.Architecture(gauntlet)
		if err != nil {
			return nil, err
		}
		spec, err := f.fleetSpec(cmd.Context(), architecture, gauntlet, ours)
		return []image.Spec{spec}, err
	}
	architectures, err := f.checkDirectories()
	if err != nil {
		return nil, fmt.Errorf("--programs: %w", err)
	}
	var specs []image.Spec
	for i, dir := range f.programs {
		spec, err := f.fleetSpec(cmd.Context(), architectures[i], filepath.Join(dir, "gauntlet"), filepath.Join(dir, setup.WorkloadControllerManager))
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// checkDirectories returns the architecture of the programs in each directory of --programs. It returns
// an error if a directory lacks a program. Two directories must not have programs for the same
// architecture. It runs before the other programs are built.
func (f *imageFlags) checkDirectories() (architectures []string, err error) {
	directories := map[string]string{} // by architecture
	for _, dir := range f.programs {
		architecture, err := image.Architecture(filepath.Join(dir, "gauntlet"))
		if err != nil {
			return nil, err
		}
		if other, twice := directories[architecture]; twice {
			return nil, fmt.Errorf("found programs for %s in %s and in %s; expected another architecture in each directory", architecture, other, dir)
		}
		directories[architecture], architectures = dir, append(architectures, architecture)
		ours := filepath.Join(dir, setup.WorkloadControllerManager)
		if err := executable.CheckFor(ours, architecture); err != nil {
			return nil, fmt.Errorf("%s: %w", ours, err)
		}
	}
	return architectures, nil
}

// fleetSpec returns the image with the programs that the pods of "gauntlet fleet" run. The arguments
// gauntlet and ours are the paths of gauntlet and of our controllers. fleetSpec builds the programs
// of the control plane if they are missing. The programs of the provider virtual and of object
// stores must be beside gauntlet. All programs are for the given architecture.
func (f *imageFlags) fleetSpec(ctx context.Context, architecture, gauntlet, ours string) (image.Spec, error) {
	spec := f.spec
	var others []string
	for _, other := range []struct {
		wanted       bool
		name, target string
	}{{f.withVirtual, virtual.Program, "virtual"}, {f.withObjectStore, objectstore.Program, "objectstore"}} {
		if !other.wanted {
			continue
		}
		program := filepath.Join(filepath.Dir(gauntlet), other.name)
		if err := executable.CheckFor(program, architecture); err != nil {
			return spec, fmt.Errorf("%s: %w; run `make %s` in a checkout of gauntlet", program, err, other.target)
		}
		others = append(others, program)
	}
	upstream, err := setup.UpstreamFor(ctx, architecture)
	if err != nil {
		return spec, &unfinishedError{err}
	}
	spec.Binary, spec.Directory, spec.Others = gauntlet, fleet.ProgramDirectory, slices.Concat(upstream, []string{ours}, others)
	return spec, nil
}
