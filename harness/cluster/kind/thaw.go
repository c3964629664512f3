package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// freezers are where the engine keeps the freezer of a container with that ID, by
// its driver of control groups. Version 2 has none that withstands a kill.
var freezers = []string{
	"/sys/fs/cgroup/freezer/docker/%s",
	"/sys/fs/cgroup/freezer/system.slice/docker-%s.scope",
}

// thaw lets go of what is frozen in a container, named by its whole ID. A runtime
// that is killed while it starts a pod leaves the pod frozen, which no signal
// ends, so that the engine waits in vain for the container's end.
func thaw(container string) error {
	var errs []error
	for _, pattern := range freezers {
		errs = append(errs, thawBelow(fmt.Sprintf(pattern, container)))
	}
	return errors.Join(errs...)
}

// thawBelow thaws the control groups of a tree, which may be gone or go meanwhile.
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
			return nil // it is gone, or there is nothing to do
		}
		if err := os.WriteFile(path, []byte("THAWED\n"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("thawing what is frozen in a node: %w", err))
		}
		return nil
	})
	return errors.Join(append(errs, walk)...)
}
