package pods

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// localPID returns the ID of a process of a container, as this machine numbers it. It returns 0 if
// no process on this machine is in a control group of the container, for example because the
// container engine runs on another machine. The argument proc is the directory /proc.
func localPID(proc, containerID string) int {
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "cgroup")) // the only error is for an invalid pattern
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || containerID == "" || !strings.Contains(string(groups), containerID) {
			continue // the process has ended, or belongs to something else
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			return pid
		}
	}
	return 0
}
