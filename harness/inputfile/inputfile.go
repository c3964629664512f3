// Package inputfile opens files that users name in flags or in other files. It refuses a pipe or
// a device at once, because reading from it may never end.
package inputfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Open opens a regular file for reading. For a directory, a pipe or a device, the error
// wraps [ErrIrregular]. Each error begins with the path.
func Open(path string) (*os.File, error) {
	// With O_NONBLOCK, opening a pipe without a writer does not block. The flag has no effect on
	// a regular file.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if info, statErr := os.Stat(path); errors.Is(err, syscall.ENXIO) && statErr == nil { // a socket
		return nil, irregular(path, info.Mode())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ErrIrregular means that a path leads to a directory, a pipe or a device.
var ErrIrregular = errors.New("not a regular file")

// irregularError is an [ErrIrregular] for one path.
type irregularError struct {
	path string
	mode fs.FileMode
}

func (e *irregularError) Error() string {
	return fmt.Sprintf("%s: found %s; expected a regular file", e.path, Describe(e.mode))
}

func (e *irregularError) Unwrap() error { return ErrIrregular }

// irregular returns the error for a file that is not a regular file.
func irregular(path string, mode fs.FileMode) error { return &irregularError{path, mode} }

// CheckDirectory returns an error if a path exists but is not a directory. A symbolic link to a
// directory is valid. Each error begins with the path.
func CheckDirectory(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: found a symbolic link that leads nowhere%s; expected a directory", path, MissingTarget(path))
	case err != nil:
		return fmt.Errorf("%s: %w; expected a directory", path, Reason(err))
	case info.Mode().IsRegular():
		return fmt.Errorf("%s: found a file; expected a directory", path)
	case !info.IsDir():
		return fmt.Errorf("%s: found %s; expected a directory", path, Describe(info.Mode()))
	}
	return nil
}

// CheckRegular returns an error if a path exists but is not a regular file, as [Open] does. It does
// not need the permission to read the file.
func CheckRegular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return irregular(path, info.Mode())
	}
	return nil
}

// ErrTooLarge means that a file is larger than the caller of [ReadAtMost] accepts.
var ErrTooLarge = errors.New("the file is too large")

// tooLargeError is an [ErrTooLarge] for one file.
type tooLargeError struct {
	path        string
	size, limit int64
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s: found a file of %d bytes; expected at most %d bytes", e.path, e.size, e.limit)
}

func (e *tooLargeError) Unwrap() error { return ErrTooLarge }

const (
	// readMax is the maximum size of a file that Read reads. The reports of large campaigns have
	// many megabytes.
	readMax = 1 << 30
	// textMax is the maximum size of a file that ReadText reads, such as a kubeconfig.
	textMax = 64 << 20
)

// Read returns the content of a regular file. It returns an error for a directory, a pipe, a device,
// or a file of more than 1 GiB.
func Read(path string) ([]byte, error) { return ReadAtMost(path, readMax) }

// ReadAtMost returns the content of a regular file, as [Read] does. If the file has more bytes than
// limit, ReadAtMost does not read the content, and the error wraps [ErrTooLarge].
func ReadAtMost(path string, limit int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	}
	if info.Size() > limit {
		return nil, &tooLargeError{path, info.Size(), limit}
	}
	content, err := readAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	case int64(len(content)) > limit: // the file grows, or the kernel does not know its size
		return nil, &tooLargeError{path, int64(len(content)), limit}
	}
	return content, nil
}

// ErrInterrupted means that a read did not end after the channel of [Interrupt] was closed.
var ErrInterrupted = errors.New("interrupted while reading the file")

// interrupted is the channel of Interrupt. It is nil before the first call.
var interrupted <-chan struct{}

// Interrupt makes reads of files end at most a second after the channel has been closed. Such a read is,
// for example, that of a file in a network file system whose server does not answer. The caller must
// call Interrupt before the first read.
func Interrupt(channel <-chan struct{}) { interrupted = channel }

// readAll returns what it reads from source. After an interrupt, it returns [ErrInterrupted] if the read
// takes longer than a second; the read then goes on.
func readAll(source io.Reader) (content []byte, err error) {
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result, 1)
	go func() {
		content, err := io.ReadAll(source)
		done <- result{content, err}
	}()
	var late <-chan time.Time
	for signal := interrupted; ; {
		select {
		case r := <-done:
			return r.content, r.err
		case <-late:
			return nil, ErrInterrupted
		case <-signal:
			signal, late = nil, time.After(time.Second)
		}
	}
}

// ReadText returns the content of a regular file that contains text, such as YAML. It returns an
// error if the content is not UTF-8 or contains a NUL byte.
func ReadText(path string) ([]byte, error) {
	content, err := ReadAtMost(path, textMax)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil, fmt.Errorf("%s: found binary data; expected text in UTF-8", path)
	}
	return content, nil
}

// secondDocument matches a document marker of YAML that follows a line of another document. It skips
// comments, blank lines and directives before the first document. After the marker "...", it needs a
// line that is neither blank nor a comment.
var secondDocument = regexp.MustCompile(`(?m)^(?:[ \t]*(?:[^#%\s-]|-[^-]|--[^-])|---[ \t]+[^#\s]).*\n(?s:.*)^(?:---(?:\s|$)|\.\.\.[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*[ \t]*[^#\s])`)

// CheckOneDocument returns an error if the YAML text of a file has several documents. Packages that
// decode YAML ignore all documents but the first. The error begins with the path.
func CheckOneDocument(path string, text []byte) error {
	if secondDocument.Match(text) {
		return fmt.Errorf("%s: found a second YAML document; expected one document per file", path)
	}
	return nil
}

// Reason returns the cause of a file error, such as "no such file or directory". It removes the
// operation and the path from the error, for messages that name the path already. It returns any
// other error unchanged.
func Reason(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// MissingTarget returns the target of a symbolic link that leads to no file, or "". An example is " (to a.yaml)".
func MissingTarget(path string) string {
	target, err := os.Readlink(path)
	if _, statErr := os.Stat(path); err != nil || statErr == nil {
		return ""
	}
	return fmt.Sprintf(" (to %s)", target)
}

// SimilarFile returns the name of a file beside a missing one whose name is similar, or "".
func SimilarFile(missing string) string {
	entries, err := os.ReadDir(filepath.Dir(missing))
	if err != nil {
		return ""
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return nearest.Name(filepath.Base(missing), names)
}

// WithExpected adds to the error of a read what the caller expected of the file. It returns other errors,
// such as an [ErrIrregular], unchanged: they say already what was expected.
func WithExpected(err error, expected string) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; expected %s", err, expected)
	}
	return err
}

// FileError returns an error about a file or a program as "PATH: reason". It removes the name of the
// operation, such as "open" or "fork/exec". It returns any other error unchanged.
func FileError(err error) error {
	var pathError *fs.PathError
	var linkError *os.LinkError
	var programError *exec.Error
	switch {
	case errors.As(err, &pathError):
		return fmt.Errorf("%s: %w", pathError.Path, pathError.Err)
	case errors.As(err, &linkError):
		return fmt.Errorf("%s: %w", linkError.New, linkError.Err)
	case errors.As(err, &programError):
		return fmt.Errorf("%s: %w", programError.Name, programError.Err)
	}
	return err
}

// Describe returns the type of a file that is not a regular file as text, such as "a directory". For
// other files, the text contains the mode.
func Describe(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a file of mode " + mode.String()
}
