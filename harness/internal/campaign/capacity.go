package campaign

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// runBytes is the memory that one run needs for the control plane, the subject and the
// check of its history.
const runBytes = 2 << 30

// DefaultParallel returns the number of concurrent runs for which this machine has
// cores and memory, at least 1.
func DefaultParallel() int { return parallelFor(runtime.NumCPU(), availableBytes()) }

func parallelFor(cores int, available uint64) int {
	return max(1, min(cores, int(available/runBytes)))
}

// availableBytes returns the available memory, 0 if it is unknown.
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
