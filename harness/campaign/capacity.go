package campaign

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// runBytes is what a run takes of the memory: a control plane, the subject, and
// the history while it is judged.
const runBytes = 2 << 30

// DefaultParallel is how many runs this machine has cores and memory for at the same time, at
// least 1.
func DefaultParallel() int { return parallelFor(runtime.NumCPU(), availableBytes()) }

func parallelFor(cores int, available uint64) int {
	return max(1, min(cores, int(available/runBytes)))
}

// availableBytes is what the machine can give without taking it away from
// anything; 0 if it does not say.
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
