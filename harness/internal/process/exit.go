package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the CPU time and the memory that a process has used.
type Usage struct {
	// CPU is the user and system CPU time of the process. It includes the CPU time of child
	// processes that have exited and for which the process has waited.
	CPU time.Duration
	// RSSBytesMax is the largest resident set size of the process in bytes, without child
	// processes. gauntlet reads the value when it sends a signal to the process. It is 0 if
	// gauntlet has sent no signal.
	RSSBytesMax int64
}

// ExitError says how a process has exited. [Process.Err] returns it.
type ExitError struct {
	// Name is the name of the process, from Spec.Name.
	Name string
	// Code is the exit status, or -1 if a signal has terminated the process.
	Code int
	// Signal is the signal that has terminated the process, or 0 if the process has exited by
	// itself.
	Signal syscall.Signal
	// Usage is the CPU time and the memory that the process has used.
	Usage Usage
	// LogPath is the path of the log file of the process.
	LogPath string
	// LogTail has the last lines that this process has written to the log file.
	LogTail string
	// DiskFull is true if the disk of the log file was almost full when the process exited. The log
	// may then not contain the reason for the exit.
	DiskFull bool
}

// Error returns the exit status or the signal, and the last lines of the log.
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
	if e.LogTail == "" {
		fmt.Fprintf(&s, "; it wrote nothing to %s", e.LogPath)
		return s.String()
	}
	fmt.Fprintf(&s, "; last lines of %s:\n\t%s", e.LogPath, strings.ReplaceAll(e.LogTail, "\n", "\n\t"))
	return s.String()
}

// newExitError returns the ExitError of a process that has exited and was reaped.
func newExitError(name string, state *os.ProcessState, log logFile) *ExitError {
	e := &ExitError{
		Name: name, Code: state.ExitCode(), LogPath: log.path, LogTail: log.tail(),
		DiskFull: diskFull(log.path),
		Usage:    Usage{CPU: state.UserTime() + state.SystemTime()},
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	return e
}

// readPeakRSS returns the largest resident set size of a running process in bytes, or 0 if it
// cannot read /proc. It does not use getrusage, whose value would be too large. That value includes
// the time before exec, when the child process had the size of gauntlet.
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

// diskFull reports whether the file system of path has less than 64 KiB of free space.
func diskFull(path string) bool {
	const freeBytesMin = 64 << 10
	var stat unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &stat); err != nil {
		return false
	}
	return int64(stat.Bavail)*stat.Bsize < freeBytesMin
}

// logFile is the log file of a process. Earlier processes may have written to the same file.
type logFile struct {
	path  string
	start int64 // size of the file in bytes when the process started
	file  *os.File
}

// openLog opens or creates a log file for appending. It also creates the directory of the file.
func openLog(path string) (logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return logFile{}, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return logFile{}, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return logFile{}, err
	}
	return logFile{path, info.Size(), file}, nil
}

// The maximum size of a log tail.
const (
	tailLinesMax = 15      // number of lines
	tailBytesMax = 8 << 10 // number of bytes that are read from the end of the log
	lineBytesMax = 500     // number of bytes per line; a Go panic can print kilobytes in one line
)

// tail returns the last lines that the process has written to its log. If it cannot read the log,
// it returns "" instead of an error, because callers add the tail to another error.
func (l logFile) tail() string {
	file, err := os.Open(l.path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	from := max(l.start, info.Size()-tailBytesMax)
	data, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil {
		return ""
	}
	return lastLines(data)
}

// lastLines returns the last lines in data that are not blank, at most [tailLinesMax]. It truncates
// each line to [lineBytesMax] bytes.
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
	return strings.Join(lines[max(0, len(lines)-tailLinesMax):], "\n")
}
