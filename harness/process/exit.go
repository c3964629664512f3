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

// Usage is what a process used, the descendants that it waited for included.
type Usage struct {
	CPU time.Duration // user and system
	// RSSBytesMax is the largest resident set of the process itself, up to when
	// gauntlet asked it to end; 0 when it ended unasked.
	RSSBytesMax int64
}

// ExitError is the end of a process.
type ExitError struct {
	Name string
	// Code is the exit status; -1 when a signal ended the process.
	Code int
	// Signal is what ended the process; 0 when it ended by itself.
	Signal  syscall.Signal
	Usage   Usage
	LogPath string
	// LogTail is the last lines of what this process wrote to its log.
	LogTail string
	// DiskFull says that the disk which holds the log has no room left, so that
	// the log may not say why the process ended.
	DiskFull bool
}

// Error says how the process ended, with the end of its log.
func (e *ExitError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s exited with status %d", e.Name, e.Code)
	if e.Signal != 0 {
		s.Reset()
		fmt.Fprintf(&s, "%s was ended by %s", e.Name, unix.SignalName(e.Signal))
	}
	if e.DiskFull {
		fmt.Fprintf(&s, "; no space is left on the disk of %s", filepath.Dir(e.LogPath))
	}
	if e.LogTail == "" {
		fmt.Fprintf(&s, "; it wrote nothing to %s", e.LogPath)
		return s.String()
	}
	fmt.Fprintf(&s, "; the end of %s:\n\t%s", e.LogPath, strings.ReplaceAll(e.LogTail, "\n", "\n\t"))
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

// peakRSS is the largest resident set so far of a process that lives, in bytes; 0
// when it cannot be read. The kernel's resource usage does not serve: its peak
// outlives exec, so that a small child has at least the size of gauntlet itself.
func peakRSS(pid int) int64 {
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

// diskFull reports whether a log line could still be written beside path.
func diskFull(path string) bool {
	const roomBytesMin = 64 << 10
	var stat unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &stat); err != nil {
		return false
	}
	return int64(stat.Bavail)*stat.Bsize < roomBytesMin
}

// logFile is the file a process logs to, and where in it the process began.
type logFile struct {
	path  string
	start int64
	file  *os.File
}

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
	lineBytesMax = 500 // a Go panic of a server can put kilobytes on one line
)

// tail is the last lines of what the process wrote. What cannot be read is
// left out: the tail explains another error and must not replace it.
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

// lastLines is the last tailLinesMax lines that are not blank, each cut to
// lineBytesMax.
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
