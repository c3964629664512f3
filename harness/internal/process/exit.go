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

// Usage is the resource usage of a process.
type Usage struct {
	// CPU is the user and system time of the process and of the descendants that it
	// waited for.
	CPU time.Duration
	// RSSBytesMax is the largest resident set size of the process, without descendants.
	// It is read when gauntlet sends a signal; later growth is not included. It is 0 if
	// gauntlet sent none.
	RSSBytesMax int64
}

// ExitError describes how a process exited.
type ExitError struct {
	// Name is the name of the process from its Spec.
	Name string
	// Code is the exit status, or -1 if a signal terminated the process.
	Code int
	// Signal is the signal that terminated the process, or 0 if there was none.
	Signal syscall.Signal
	// Usage is the resource usage of the process.
	Usage Usage
	// LogPath is the log file of the process.
	LogPath string
	// LogTail contains the last lines that this process wrote to the log file.
	LogTail string
	// DiskFull reports whether the disk of the log file is full. If it is full, the log
	// may not contain the reason of the exit.
	DiskFull bool
}

// Error returns how the process exited and the last lines of its log.
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

// readPeakRSS returns the largest resident set size of a running process in bytes.
// It returns 0 if the value cannot be read. getrusage is no alternative: its value
// includes the time before exec, when the child had the size of gauntlet.
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

// diskFull reports whether the file system of path has almost no free space.
func diskFull(path string) bool {
	const freeBytesMin = 64 << 10
	var stat unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &stat); err != nil {
		return false
	}
	return int64(stat.Bavail)*stat.Bsize < freeBytesMin
}

// logFile is the log file of a process.
type logFile struct {
	path  string
	start int64 // offset of the first byte that this process wrote
	file  *os.File
}

// openLog opens the log file for appending and creates its directory.
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

const (
	tailLinesMax = 15
	tailBytesMax = 8 << 10
	lineBytesMax = 500 // a Go panic can print kilobytes in one line
)

// tail returns the last lines that the process wrote to its log. If it cannot read the
// log, it returns "" instead of an error. The tail explains another error and must not
// replace that error.
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

// lastLines returns the last tailLinesMax non-blank lines, each truncated to lineBytesMax.
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
