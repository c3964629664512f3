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
	"syscall"
	"unicode/utf8"
)

// Open opens a regular file for reading. It returns an error for a directory, a pipe or a
// device. Each error begins with the path.
func Open(path string) (*os.File, error) {
	// With O_NONBLOCK, opening a pipe without a writer does not block. The flag has no effect on
	// a regular file.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: found %s; expected a regular file", path, Describe(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Read returns the content of a regular file. It returns an error for a directory, a pipe or a
// device.
func Read(path string) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// ReadText returns the content of a regular file that contains text, such as YAML. It returns an
// error if the content is not UTF-8 or contains a NUL byte.
func ReadText(path string) ([]byte, error) {
	content, err := Read(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil, fmt.Errorf("%s: found binary data; expected text in UTF-8", path)
	}
	return content, nil
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

// Describe returns the type of a file that is not a regular file as text, such as "a directory". For
// other files, the text contains the mode.
func Describe(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a file of mode " + mode.String()
}
