package subject

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Target identifies the subject under test.
type Target struct {
	kind string
	// name is the path of an exec target or the reference of an image target.
	name string
}

// Targets without a name.
var (
	// Ours is the workload-controller-manager built from controllers/.
	Ours = Target{kind: "ours"}
	// Upstream is kube-controller-manager with only the controllers under test.
	Upstream = Target{kind: "upstream"}
)

// Kinds of targets with a name.
const (
	execKind  = "exec"
	imageKind = "image"
)

// ParseTarget parses a target of the command line: ours, upstream, exec:PATH or
// image:REF. PATH is an executable; REF is a container image with an entrypoint. Both
// must accept kube-controller-manager's flags.
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
		return Target{}, fmt.Errorf("subject image:%s: expected an image reference: %w", reference, err)
	}
	return Target{kind: imageKind, name: reference}, nil
}

// Image returns the image reference of an image target, and whether t is one.
func (t Target) Image() (reference string, ok bool) { return t.name, t.kind == imageKind }

// String returns the target in the format of ParseTarget.
func (t Target) String() string {
	if t.name != "" {
		return t.kind + ":" + t.name
	}
	return t.kind
}

// CheckControllers returns nil if the target can run the given controllers. Ours can run
// only controllers with a contract. Other targets accept the flags of
// kube-controller-manager, and thus all its controllers.
func (t Target) CheckControllers(controllers []kube.Controller) error {
	if t != Ours {
		return nil
	}
	for _, c := range kube.OrDefault(controllers) {
		if !c.Contract {
			return fmt.Errorf("subject %s: cannot run %s: expected only %s, or the subject upstream, exec:PATH or image:REF",
				t, c.Name, strings.Join(kube.DefaultControllers(), ", "))
		}
	}
	return nil
}

// Executable returns the path of the target's executable. The arguments are the paths
// of our and upstream's executable. If the file is missing, the error names the make
// target that builds it.
func (t Target) Executable(ours, upstream string) (string, error) {
	var path, remedy string
	switch {
	case t == Ours:
		path, remedy = ours, "make build"
	case t == Upstream:
		path, remedy = upstream, "make upstream"
	case t.kind == imageKind:
		return "", fmt.Errorf("subject %s: an image can only run in pods: expected --provider=kind, or the subject exec:PATH", t)
	default:
		return t.name, nil
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("subject %s: executable not found, run `%s`: %w", t, remedy, err)
	}
	return path, nil
}
