package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// freezers lists the possible paths of a container's freezer cgroup (cgroup v1). %s is the
// container ID. The path depends on the cgroup driver of the container engine.
//
// On cgroup v2, none of these paths exists. That is no problem, because SIGKILL then terminates
// frozen processes too.
var freezers = []string{
	"/sys/fs/cgroup/freezer/docker/%s",
	"/sys/fs/cgroup/freezer/system.slice/docker-%s.scope",
}

// thaw unfreezes all processes in a node's container, because SIGKILL cannot terminate frozen
// processes. The argument container is the full container ID.
//
// A pod's processes stay frozen if a fault kills the container runtime while the runtime starts the
// pod.
func thaw(container string) error {
	var errs []error
	for _, pattern := range freezers {
		errs = append(errs, thawBelow(fmt.Sprintf(pattern, container)))
	}
	return errors.Join(errs...)
}

// thawBelow unfreezes a cgroup and all cgroups below it. The argument root is the directory of the
// first cgroup. Cgroups that another process removes at the same time are no error.
func thawBelow(root string) error {
	var errs []error
	walk := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.Name() != "freezer.state" {
			return err
		}
		state, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(state)) == "THAWED" {
			return nil // the cgroup no longer exists or is not frozen
		}
		if err := os.WriteFile(path, []byte("THAWED\n"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("thawing the cgroups of a node container below %s: %w", root, err))
		}
		return nil
	})
	return errors.Join(append(errs, walk)...)
}
