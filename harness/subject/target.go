package subject

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Target names what is under test.
type Target struct {
	kind string
	path string // of an exec target
}

// The targets that need no path.
var (
	// Ours is controllers/ of this project.
	Ours = Target{kind: "ours"}
	// Upstream is kube-controller-manager, running the four controllers alone.
	Upstream = Target{kind: "upstream"}
)

const execKind = "exec"

// ParseTarget reads a target as the command line gives it: "ours", "upstream",
// or "exec:PATH", where PATH is an executable that takes
// kube-controller-manager's flags.
func ParseTarget(s string) (Target, error) {
	switch kind, path, hasPath := strings.Cut(s, ":"); {
	case s == Ours.kind:
		return Ours, nil
	case s == Upstream.kind:
		return Upstream, nil
	case kind == execKind && hasPath:
		return parseExec(path)
	default:
		return Target{}, fmt.Errorf("subject %q: expected ours, upstream or exec:PATH", s)
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
	return Target{kind: execKind, path: absolute}, nil
}

// String is the target as ParseTarget reads it.
func (t Target) String() string {
	if t.kind == execKind {
		return execKind + ":" + t.path
	}
	return t.kind
}

// Executable returns the target's executable, given where ours and upstream's
// are. The error of one that is missing says what would put it there.
func (t Target) Executable(ours, upstream string) (string, error) {
	var path, remedy string
	switch t {
	case Ours:
		path, remedy = ours, "make build"
	case Upstream:
		path, remedy = upstream, "make upstream"
	default:
		return t.path, nil
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("subject %s: no executable (run `%s`): %w", t, remedy, err)
	}
	return path, nil
}
