package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/image"
)

// imageDefault is the image that controllers/deploy names. Its registry is no
// registry, so that nobody pulls something else of that name.
const imageDefault = "localhost/workload-controller-manager:dev"

func newImage() *cobra.Command {
	spec := image.Spec{}
	var output string
	var labels map[string]string
	cmd := &cobra.Command{
		Use:   "image BINARY",
		Short: "Write the container image of a binary",
		Long: `Write an image that has BINARY, a static Linux executable, and nothing else, as
an archive that "docker load", "kind load image-archive" and "ctr images import"
take. It runs as user ` + image.User + ` and needs no writable file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			spec.Binary, spec.Labels = args[0], map[string]string{
				"org.opencontainers.image.title":   filepath.Base(args[0]),
				"org.opencontainers.image.version": revision,
			}
			maps.Copy(spec.Labels, labels)
			if err := writeImage(output, spec); err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&output, "output", "image.tar", "the archive to write")
	f.StringVar(&spec.Reference, "reference", imageDefault, "the image's name and tag")
	f.StringToStringVar(&labels, "label", nil, "a `KEY=VALUE` for the image to carry, such as org.opencontainers.image.revision; may be repeated")
	return cmd
}

// writeImage writes an archive that is whole or not there.
func writeImage(path string, spec image.Spec) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the image's archive: %w", err)
	}
	defer os.Remove(file.Name()) // no more there when all went well
	err = image.Write(file, spec)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
