package fleet

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryKills returns how many processes the kernel has killed in the container of this process
// because memory ran out. It returns 0 if no cgroup file has the number.
//
// On nodes with cgroup v1, the kernel kills only one process of the container. The other processes
// continue, so that the exit code of the container does not show that memory ran out.
func MemoryKills() int { return memoryKills("/sys/fs/cgroup") }

// memoryKills returns how many processes the kernel has killed because memory ran out. It reads the
// cgroup file system at root: memory.events of cgroup v2, or memory/memory.oom_control of cgroup v1.
func memoryKills(root string) int {
	for _, name := range []string{"memory.events", "memory/memory.oom_control"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if n, err := strconv.Atoi(value); err == nil && key == "oom_kill" {
				return n
			}
		}
	}
	return 0
}
