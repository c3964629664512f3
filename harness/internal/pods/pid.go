package pods

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// localPID returns the process ID, on this machine, of a process in a container. It returns 0 if
// no process of this machine is in the container. For example, the container engine may run on
// another machine. The argument proc is the path of /proc.
func localPID(proc, containerID string) int {
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "cgroup")) // the only error is for an invalid pattern
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || containerID == "" || !strings.Contains(string(groups), containerID) {
			continue // the process has ended, or is not in this container
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			return pid
		}
	}
	return 0
}
