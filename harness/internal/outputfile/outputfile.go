// Package outputfile writes files completely or not at all. A full disk thus leaves no empty file,
// and an earlier version of a file remains.
package outputfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// Create writes a new file. It returns an error that wraps fs.ErrExist if the file exists, also if
// another process has just created it. Each error begins with the path.
func Create(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", path, inputfile.Reason(err))
	}
	_, err = file.Write(content)
	if err = errors.Join(inputfile.Reason(err), inputfile.Reason(file.Close())); err != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, os.Remove(path)))
	}
	return nil
}

// Replace writes a file, and replaces an earlier version only after the new one is complete. See
// [ReplaceWith].
func Replace(path string, content []byte) error {
	return ReplaceWith(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// ReplaceWith writes a file by calling its argument write. It replaces an earlier version only
// after the new one is complete. If the path is a link, it replaces the file to which the link
// leads. It writes to a device or a pipe directly. Each error begins with the path.
func ReplaceWith(path string, write func(io.Writer) error) error {
	target := path
	if linked, err := filepath.EvalSymlinks(path); err == nil {
		target = linked
	}
	replace := replaceRegular
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		replace = writeDirectly
	}
	if err := replace(target, write); err != nil {
		return fmt.Errorf("%s: %w", path, inputfile.Reason(err))
	}
	return nil
}

// replaceRegular writes a temporary file in the directory of the path, and then renames this file.
func replaceRegular(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(Directory(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after the rename, the file does not exist, so this has no effect
	err = write(file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// writeDirectly writes to an existing device or pipe. It returns an error for a directory.
func writeDirectly(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// CreateDirectory creates a directory in parent and returns its path. If parent/name exists, it appends
// a number to the name, such as name-2. Two processes thus never get the same directory.
func CreateDirectory(parent, name string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	for i := 1; ; i++ {
		path := filepath.Join(parent, name)
		if i > 1 {
			path = fmt.Sprintf("%s-%d", path, i)
		}
		if err := os.Mkdir(path, 0o755); !errors.Is(err, os.ErrExist) {
			return path, err
		}
	}
}

// Directory returns the directory of a path, as the path names it. For d/../x it returns d/.., which
// exists only if d exists. In contrast, filepath.Dir returns the current directory.
func Directory(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" {
		return "."
	}
	return cmp.Or(strings.TrimRight(dir, "/"), "/")
}
