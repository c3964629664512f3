package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// freezers lists the possible paths of the cgroup v1 freezer of a container. The cgroup driver
// of the container engine determines the path. %s is the container ID.
//
// On cgroup v2, none of these paths exists, but SIGKILL also terminates frozen processes.
var freezers = []string{
	"/sys/fs/cgroup/freezer/docker/%s",
	"/sys/fs/cgroup/freezer/system.slice/docker-%s.scope",
}

// thaw unfreezes all processes in the container of a node, so that SIGKILL can terminate them.
// The argument container is the full container ID.
//
// Processes of a pod stay frozen if the container runtime is killed while it starts the pod.
func thaw(container string) error {
	var errs []error
	for _, pattern := range freezers {
		errs = append(errs, thawBelow(fmt.Sprintf(pattern, container)))
	}
	return errors.Join(errs...)
}

// thawBelow unfreezes all cgroups in the directory root and below. It ignores cgroups that another
// process removes at the same time.
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
			errs = append(errs, fmt.Errorf("thawing a frozen cgroup of a node container: %w", err))
		}
		return nil
	})
	return errors.Join(append(errs, walk)...)
}
