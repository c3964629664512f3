// Package inputfile opens files that users name. It refuses a pipe or a device at once, because
// reading one may never end.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file for reading.
func Open(path string) (*os.File, error) {
	// With O_NONBLOCK, a pipe without a writer is opened at once. It has no effect on a file.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: found %s; expected a file", path, describe(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Read returns the content of a regular file.
func Read(path string) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// Reason returns the reason of a file error, without the operation and the path. It is for messages
// that name the path already.
func Reason(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// describe names a type of file that is no regular file.
func describe(mode fs.FileMode) string {
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
