package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
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

func newImage() *cobra.Command {
	spec := image.Spec{}
	var output string
	var labels map[string]string
	var forFleet, withVirtual, withObjectStore, push bool
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

With --push, the command sends the image to the registry of --reference instead, with
the credentials of "docker login".`,
		Example: `  gauntlet image ./my-kcm --output=my-kcm.tar
  gauntlet image --fleet --output=fleet.tar
  gauntlet image --fleet --push --reference=registry.example/gauntlet-fleet:v1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case forFleet && len(args) == 1:
				return fmt.Errorf("image: found the argument %q and --fleet; use one of them", args[0])
			case !forFleet && len(args) == 0:
				return errors.New("image: found no argument; expected BINARY, or --fleet")
			case forFleet:
				if err := fleetPrograms(cmd, &spec, withVirtual, withObjectStore); err != nil {
					return err
				}
			case withVirtual || withObjectStore:
				return errors.New("image: found --virtual or --object-store without --fleet; add --fleet, or omit them")
			default:
				spec.Binary = args[0]
			}
			if err := checkImageFlags(cmd, output, push, labels); err != nil {
				return err
			}
			spec.Labels = map[string]string{
				"org.opencontainers.image.title":   filepath.Base(spec.Binary),
				"org.opencontainers.image.version": revision,
			}
			maps.Copy(spec.Labels, labels)
			built, err := image.Build(spec)
			if err != nil {
				return err
			}
			if push {
				if err := built.Push(cmd.Context()); err != nil {
					return &unfinishedError{err}
				}
				return nil
			}
			if err := outputfile.ReplaceWith(output, built.Write); err != nil {
				return &unfinishedError{fmt.Errorf("writing the image archive: %w", err)}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&output, "output", "image.tar", "the archive `file` to write")
	f.StringVar(&spec.Reference, "reference", imageDefault, "the name and tag of the image; with --fleet, the default is "+fleetImageDefault)
	f.BoolVar(&forFleet, "fleet", false, "put the programs of a fleet into the image")
	f.BoolVar(&withVirtual, "virtual", false, "with --fleet, also put the program of the provider virtual into the image")
	f.BoolVar(&withObjectStore, "object-store", false, "with --fleet, also put the program for \"gauntlet fleet run --store\" into the image")
	f.BoolVar(&push, "push", false, "send the image to its registry; write no archive")
	f.StringToStringVar(&labels, "label", nil, "a `KEY=VALUE` label of the image, such as org.opencontainers.image.revision; repeatable")
	return cmd
}

// checkImageFlags returns an error if the flags of "gauntlet image" contradict each other. It also
// returns an error if --output or --label has an invalid value.
func checkImageFlags(cmd *cobra.Command, output string, push bool, labels map[string]string) error {
	if push && cmd.Flags().Changed("output") {
		return errors.New("image: found --push and --output; with --push, the command writes no archive: omit one of the two flags")
	}
	if !push {
		if err := checkFile("output", output); err != nil {
			return err
		}
	}
	if _, ok := labels[""]; ok {
		return errors.New("--label: found an empty key; expected KEY=VALUE")
	}
	return nil
}

// fleetPrograms adds to an image the programs that the pods of "gauntlet fleet" run. It builds
// gauntlet's other programs and those of the control plane if they are missing. The programs of
// the provider virtual and of object stores must exist already.
func fleetPrograms(cmd *cobra.Command, spec *image.Spec, withVirtual, withObjectStore bool) error {
	if !cmd.Flags().Changed("reference") {
		spec.Reference = fleetImageDefault
	}
	gauntlet, ours, err := executables(cmd.Context(), subject.Ours)
	if err != nil {
		return &unfinishedError{err}
	}
	upstream, err := setup.Upstream(cmd.Context())
	if err != nil {
		return &unfinishedError{err}
	}
	spec.Binary, spec.Directory, spec.Others = gauntlet, fleet.ProgramDirectory, append(upstream, ours)
	if withVirtual {
		program, err := virtual.Find(gauntlet)
		if err != nil {
			return &unfinishedError{err}
		}
		spec.Others = append(spec.Others, program)
	}
	if withObjectStore {
		program, err := objectstore.Find(gauntlet)
		if err != nil {
			return &unfinishedError{err}
		}
		spec.Others = append(spec.Others, program)
	}
	return nil
}
