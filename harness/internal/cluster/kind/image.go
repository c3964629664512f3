package kind

import (
	"context"
	"errors"
	"fmt"
)

const (
	// BuiltImage is the name of the node image that `make node-image` builds from source.
	BuiltImage = "gauntlet/node:v1.36.3"
	// ReleasedImage is the name of a node image that the kind project publishes. The image is for
	// the kind release in go.mod, and contains the Kubernetes minor version that gauntlet tests.
	// The digest is from kind's release notes.
	ReleasedImage = "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed"
)

// ChooseImage returns the name of the node image to use, and pulls the image if necessary. If
// requested is not empty, ChooseImage returns requested. Otherwise, it returns [BuiltImage] if the
// container engine has this image, and [ReleasedImage] if not.
func ChooseImage(ctx context.Context, requested string) (string, error) {
	var e engine
	if err := e.check(ctx); err != nil {
		return "", err
	}
	image := requested
	if image == "" {
		switch err := e.hasImage(ctx, BuiltImage); {
		case err == nil:
			return BuiltImage, nil
		case !errors.Is(err, errNoImage):
			return "", err
		}
		image = ReleasedImage
	}
	switch err := e.hasImage(ctx, image); {
	case err == nil:
		return image, nil
	case !errors.Is(err, errNoImage):
		return "", err
	}
	if _, err := e.run(ctx, enginePullTimeout, "pull", "--quiet", image); err != nil {
		return "", fmt.Errorf("node image %s cannot be pulled; build a node image without a registry with `make node-image`, or select another image with --node-image: %w", image, err)
	}
	return image, nil
}

// hasImage returns nil if the engine has the image. If the image is missing, the error wraps
// errNoImage.
func (e engine) hasImage(ctx context.Context, image string) error {
	_, err := e.run(ctx, engineQueryTimeout, "image", "inspect", "--format", "{{.Id}}", image)
	return err
}
