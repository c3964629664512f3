package kind

import (
	"context"
	"errors"
	"fmt"
)

const (
	// BuiltImage is the node image that harness/nodeimage builds, where there is
	// no registry to pull one from.
	BuiltImage = "gauntlet/node:v1.36.3"
	// ReleasedImage is the node image that belongs to the release of kind in
	// go.mod, for the minor version of Kubernetes that gauntlet is about. Its
	// digest stands in the notes of that release.
	ReleasedImage = "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed"
)

// ChooseImage returns the node image to use and sees that the engine has it: the
// one asked for, or else the one built here, or else kind's released one, which
// is pulled when it is not there.
func ChooseImage(ctx context.Context, asked string) (string, error) {
	var e engine
	if err := e.check(ctx); err != nil {
		return "", err
	}
	image := asked
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
	if _, err := e.run(ctx, enginePullMax, "pull", "--quiet", image); err != nil {
		return "", fmt.Errorf("the node image %s is not here and cannot be pulled (`make node-image` builds one without a registry; --node-image names another): %w", image, err)
	}
	return image, nil
}

// hasImage is nil when the engine has the image, errNoImage when it does not.
func (e engine) hasImage(ctx context.Context, image string) error {
	_, err := e.run(ctx, engineAnswerMax, "image", "inspect", "--format", "{{.Id}}", image)
	return err
}
