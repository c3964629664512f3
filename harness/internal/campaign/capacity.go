package campaign

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// runBytes is the memory that one run needs, in bytes. The control plane, the controllers under
// test and the checks use this memory.
const runBytes = 2 << 30

// DefaultParallel returns how many runs this machine can make at the same time, at least 1. The
// number of cores and the available memory limit the number.
func DefaultParallel() int { return parallelFor(runtime.NumCPU(), availableBytes()) }

// DefaultLimit returns an adaptive limit for runs in real time. It begins with [DefaultParallel].
// It can reach four times the number of cores, because a run waits for the clock most of the time. It
// does not exceed the available memory, nor the argument highest, which is at least 1.
func DefaultLimit(highest int) *Limit {
	return Adaptive(min(DefaultParallel(), highest), min(parallelFor(4*runtime.NumCPU(), availableBytes()), highest))
}

// parallelFor returns how many runs fit on a machine at the same time, at least 1. The arguments
// are the number of cores and the available memory in bytes.
func parallelFor(cores int, available uint64) int {
	return max(1, min(cores, int(available/runBytes)))
}

// availableBytes returns the available memory of this machine in bytes. It returns 0 if
// /proc/meminfo does not contain the number.
func availableBytes() uint64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kibibytes uint64
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			if _, err := fmt.Sscanf(rest, "%d kB", &kibibytes); err == nil {
				return kibibytes << 10
			}
		}
	}
	return 0
}
