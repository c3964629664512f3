package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// Store contains the results of campaigns as named files. The parts of a name are separated by
// slashes, as in "nightly/campaign.json".
//
// Several workers, which are the programs in a campaign's pods, use a store at the same time.
// Different workers write the same name only with the same content.
type Store interface {
	// Put writes content under a name. Readers see the whole content, or nothing.
	Put(ctx context.Context, name string, content []byte) error
	// Get returns the content under a name. If there is none, the error is fs.ErrNotExist.
	Get(ctx context.Context, name string) ([]byte, error)
	// List returns all names that begin with prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
}

// Directory is the path of a directory that serves as a Store, such as a mounted
// PersistentVolumeClaim.
type Directory string

// unfinishedSuffix ends the names of files that are not complete yet. A killed worker can leave
// such a file, which List ignores.
const unfinishedSuffix = ".unfinished"

// Put writes a file atomically. It writes to a temporary file, and then renames that file.
func (d Directory) Put(_ context.Context, name string, content []byte) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing file %s to the store of results: %w", name, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+unfinishedSuffix)
	if err != nil {
		return fmt.Errorf("writing file %s to the store of results: %w", name, err)
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err == nil {
		err = file.Sync() // a node that is lost must not leave an empty file
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing file %s to the store of results: %w", name, errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// Get reads the file with the given name in the store. It refuses a pipe, a device, and a file that
// is larger than any file that a worker writes.
func (d Directory) Get(_ context.Context, name string) ([]byte, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	return inputfile.Read(path)
}

// List returns the names of all files in the store that begin with prefix, sorted. To save time, it
// reads only the directory of prefix, and the directories below it. For example, List reads only
// the directory nightly for the prefix "nightly/". This directory may be a symbolic link.
func (d Directory) List(ctx context.Context, prefix string) ([]string, error) {
	top, _ := path.Split(prefix)
	var names []string
	root := filepath.Join(string(d), filepath.FromSlash(top))
	if linked, err := filepath.EvalSymlinks(root); err == nil {
		root = linked
	}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no such campaign or index yet
		}
		if err != nil {
			return err
		}
		if entry.IsDir() || strings.HasSuffix(file, unfinishedSuffix) {
			return ctx.Err()
		}
		relative, err := filepath.Rel(root, file)
		if name := path.Join(top, filepath.ToSlash(relative)); err == nil && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the files in the store of results whose names begin with %q: %w", prefix, err)
	}
	slices.Sort(names)
	return names, nil
}

// path returns the path of the file that has the given name in the store. It returns an error if
// the name leads out of the store, as ../x does.
func (d Directory) path(name string) (string, error) {
	local, err := filepath.Localize(name)
	if err != nil {
		return "", fmt.Errorf("file %q in the store of results: %w; expected a name without \"..\"", name, err)
	}
	return filepath.Join(string(d), local), nil
}
