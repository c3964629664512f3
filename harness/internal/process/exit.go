package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kube-gauntlet/gauntlet/harness/internal/logfile"
)

// Usage is the CPU time and the memory that a process has used.
type Usage struct {
	// CPU is the user and system CPU time of the process. It includes the CPU time of those
	// children that have exited and for which the process has waited.
	CPU time.Duration
	// RSSBytesMax is the largest resident set size of the process in bytes, without child
	// processes. gauntlet reads this value each time it sends a signal to the process. The value
	// is 0 if gauntlet has sent no signal.
	RSSBytesMax int64
}

// ExitError is the error of [Process.Err]. It says how a process has exited.
type ExitError struct {
	// Name is the name of the process from [Spec].
	Name string
	// Code is the exit status, or -1 if a signal has terminated the process.
	Code int
	// Signal is the signal that has terminated the process, or 0 if no signal has.
	Signal syscall.Signal
	// Usage is the CPU time and the memory that the process has used.
	Usage Usage
	// LogPath is the path of the log file of the process.
	LogPath string
	// LogTail contains the last lines that this process has written to the log file, at most 15.
	LogTail string
	// DiskFull is true if the log file's disk was almost full when the process exited. The log
	// may then lack the reason for the exit.
	DiskFull bool
}

// Error returns the exit status or the signal, and the last lines of the log. With a full disk, it
// returns the path of the log instead of the lines, because the full disk is the reason.
func (e *ExitError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s exited with status %d", e.Name, e.Code)
	if e.Signal != 0 {
		s.Reset()
		fmt.Fprintf(&s, "%s was terminated by %s", e.Name, unix.SignalName(e.Signal))
	}
	if e.DiskFull {
		fmt.Fprintf(&s, "; no space left on the disk of %s", filepath.Dir(e.LogPath))
	}
	switch {
	case e.LogTail == "":
		fmt.Fprintf(&s, "; it wrote nothing to %s", e.LogPath)
		return s.String()
	case e.DiskFull:
		fmt.Fprintf(&s, "; see %s", e.LogPath)
		return s.String()
	}
	fmt.Fprintf(&s, "; last lines of %s:\n\t%s", e.LogPath, strings.ReplaceAll(e.LogTail, "\n", "\n\t"))
	return s.String()
}

// newExitError returns the ExitError of a process that was reaped. The argument state contains
// the exit status and the CPU time.
func newExitError(spec *Spec, state *os.ProcessState, log *logfile.File) *ExitError {
	e := &ExitError{
		Name: spec.Name, Code: state.ExitCode(), LogPath: spec.LogPath, LogTail: lastLines(log.Recent()),
		DiskFull: diskFull(spec.LogPath),
		Usage:    Usage{CPU: state.UserTime() + state.SystemTime()},
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	return e
}

// readPeakRSS returns the largest resident set size of a running process in bytes. It returns 0
// if /proc/<pid>/status is not readable.
//
// readPeakRSS does not use getrusage, whose value also covers the time before exec. At that
// time, the child process is as large as gauntlet.
func readPeakRSS(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil && n == 1 {
			return kib << 10
		}
	}
	return 0
}

// diskFull reports whether the file system of path has less than 64 KiB of free space. It
// returns false if the free space is unknown.
func diskFull(path string) bool {
	const freeBytesMin = 64 << 10
	var stat unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &stat); err != nil {
		return false
	}
	return int64(stat.Bavail)*stat.Bsize < freeBytesMin
}

// These constants limit the size of a log tail, which error messages contain.
const (
	tailLinesMax = 15  // maximum number of lines in a log tail
	lineBytesMax = 500 // number of bytes per line; a Go panic can print kilobytes in one line
)

// reasonPattern matches the line in which a Go program says why it ends. The stacks of goroutines
// follow this line. The last alternative is a fatal line of klog.
var reasonPattern = regexp.MustCompile(`^(panic: |fatal error: |F\d{4} )`)

// lastLines returns the last lines of data that are not blank, at most [tailLinesMax]. It
// truncates each line to [lineBytesMax] bytes. If these lines lack the reason for
// the stacks of a Go program, the result begins with the last line that matches [reasonPattern].
func lastLines(data []byte) string {
	var lines []string
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\r\n\t ")
		if len(line) == 0 {
			continue
		}
		if len(line) > lineBytesMax {
			line = append(line[:lineBytesMax:lineBytesMax], "…"...)
		}
		lines = append(lines, strings.ToValidUTF8(string(line), "?"))
	}
	first := max(0, len(lines)-tailLinesMax)
	if !slices.ContainsFunc(lines[first:], reasonPattern.MatchString) {
		for i, line := range lines[:first] {
			if reasonPattern.MatchString(line) {
				first = i
			}
		}
	}
	return strings.Join(lines[first:min(len(lines), first+tailLinesMax)], "\n")
}
