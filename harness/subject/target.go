package subject

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Target names what is under test.
type Target struct {
	kind string
	// name is the path of an exec target, the reference of an image target.
	name string
}

// The targets that need no path.
var (
	// Ours is controllers/ of this project.
	Ours = Target{kind: "ours"}
	// Upstream is kube-controller-manager, running the four controllers alone.
	Upstream = Target{kind: "upstream"}
)

// The targets that are named.
const (
	execKind  = "exec"
	imageKind = "image"
)

// ParseTarget reads a target as the command line gives it: "ours", "upstream",
// "exec:PATH", where PATH is an executable, or "image:REF", where REF is a
// container image with an entrypoint; both take kube-controller-manager's flags.
func ParseTarget(s string) (Target, error) {
	switch kind, named, ok := strings.Cut(s, ":"); {
	case s == Ours.kind:
		return Ours, nil
	case s == Upstream.kind:
		return Upstream, nil
	case kind == execKind && ok:
		return parseExec(named)
	case kind == imageKind && ok:
		return parseImage(named)
	default:
		return Target{}, fmt.Errorf("subject %q: expected ours, upstream, exec:PATH or image:REF", s)
	}
}

func parseExec(path string) (Target, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Target{}, fmt.Errorf("subject exec:%s: expected an executable file: %w", path, err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return Target{}, fmt.Errorf("subject exec:%s: expected an executable file, found mode %s", path, info.Mode())
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Target{}, fmt.Errorf("subject exec:%s: %w", path, err)
	}
	return Target{kind: execKind, name: absolute}, nil
}

func parseImage(reference string) (Target, error) {
	if _, err := name.ParseReference(reference); err != nil {
		return Target{}, fmt.Errorf("subject image:%s: expected an image's name, with a tag or a digest: %w", reference, err)
	}
	return Target{kind: imageKind, name: reference}, nil
}

// Image is the reference of an image target, and whether it is one.
func (t Target) Image() (reference string, ok bool) { return t.name, t.kind == imageKind }

// String is the target as ParseTarget reads it.
func (t Target) String() string {
	if t.name != "" {
		return t.kind + ":" + t.name
	}
	return t.kind
}

// Executable returns the target's executable, given where ours and upstream's
// are. The error of one that is missing says what would put it there.
func (t Target) Executable(ours, upstream string) (string, error) {
	var path, remedy string
	switch {
	case t == Ours:
		path, remedy = ours, "make build"
	case t == Upstream:
		path, remedy = upstream, "make upstream"
	case t.kind == imageKind:
		return "", fmt.Errorf("subject %s: an image runs in pods alone: expected --provider=kind, or exec:PATH", t)
	default:
		return t.name, nil
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("subject %s: no executable (run `%s`): %w", t, remedy, err)
	}
	return path, nil
}
