package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/image"
)

// imageDefault is the image reference in the manifests of controllers/deploy. Its registry
// host is localhost, so that no node pulls an image with this name from a public registry.
const imageDefault = "localhost/workload-controller-manager:dev"

func newImage() *cobra.Command {
	spec := image.Spec{}
	var output string
	var labels map[string]string
	cmd := &cobra.Command{
		Use:   "image BINARY",
		Short: "Write a container image that contains one binary",
		Long: `Write a container image that contains only BINARY, a static Linux executable. The
archive is in the format that "docker load", "kind load image-archive" and "ctr images
import" accept. The image runs as user ` + image.User + ` and needs no writable file
system.`,
		Example: `  gauntlet image ./my-kcm --output=my-kcm.tar`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			spec.Binary, spec.Labels = args[0], map[string]string{
				"org.opencontainers.image.title":   filepath.Base(args[0]),
				"org.opencontainers.image.version": revision,
			}
			maps.Copy(spec.Labels, labels)
			built, err := image.Build(spec)
			if err != nil {
				return err
			}
			if err := writeImage(output, built); err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&output, "output", "image.tar", "the archive `file` to write")
	f.StringVar(&spec.Reference, "reference", imageDefault, "the name and tag of the image")
	f.StringToStringVar(&labels, "label", nil, "a `KEY=VALUE` label of the image, such as org.opencontainers.image.revision; repeatable")
	return cmd
}

// writeImage writes the image archive to path. It replaces an existing file only after the
// archive is complete.
func writeImage(path string, built *image.Image) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the image archive: %w", err)
	}
	defer os.Remove(file.Name()) // fails without effect after the rename
	err = built.Write(file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
