package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// enterRoot mounts files, and makes dir the root directory of this process. The new root shows
// everything that the old one has, and the mounts. This process must have a mount namespace of its
// own, so that no other process sees the changes. The argument dir is an empty directory.
func enterRoot(dir string, mounts []Mount) error {
	// Without this call, mounts of this process could appear in other namespaces.
	if err := mount("", "/", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	r := newRoot{dir: dir, own: map[string]bool{}}
	if err := r.copy("/", "/"); err != nil {
		return err
	}
	for _, m := range mounts {
		if err := r.add(m); err != nil {
			return err
		}
	}
	if err := unix.Chroot(dir); err != nil {
		return &os.PathError{Op: "chroot", Path: dir, Err: err}
	}
	return nil
}

// newRoot is a directory that becomes the root directory of a process.
type newRoot struct {
	dir string // path of the directory
	// own has the paths of the directories in which this process may create files, because no other
	// process sees them. The paths are those below the new root, without symbolic links.
	own map[string]bool
}

// linksMax is the maximum number of symbolic links in a path, as in the Linux kernel.
const linksMax = 40

// add mounts one file or directory. It creates the directories of the target that do not exist.
func (r newRoot) add(m Mount) error {
	source, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	target, err := r.create(m.Target, source.IsDir())
	if err != nil {
		return fmt.Errorf("creating %s: %w", m.Target, err)
	}
	delete(r.own, target) // the directory is now the source, which other processes see
	return mount(m.Source, r.dir+target, unix.MS_BIND|unix.MS_REC)
}

// create returns the path of target without symbolic links. If target does not exist below the new
// root, create creates it, as a directory or as an empty file.
func (r newRoot) create(target string, directory bool) (string, error) {
	at, rest, links := "/", strings.Split(target, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, name) // also handles "" and ".."
		info, err := os.Lstat(r.dir + next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := r.make(at, next, directory || len(rest) > 0); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(r.dir + next)
			if links++; err != nil || links > linksMax {
				return "", errors.Join(err, unix.ELOOP)
			}
			if filepath.IsAbs(link) {
				at = "/"
			}
			rest = append(strings.Split(link, "/"), rest...)
			continue
		}
		at = next
	}
	return at, nil
}

// make creates a directory or an empty file in the directory parent, which exists.
func (r newRoot) make(parent, path string, directory bool) error {
	if !r.own[parent] {
		if err := r.copy(r.dir+parent, parent); err != nil {
			return err
		}
	}
	if !directory {
		return os.WriteFile(r.dir+path, nil, 0o600)
	}
	r.own[path] = true
	return os.Mkdir(r.dir+path, 0o755)
}

// copy makes a directory of the new root look like the directory from, in a file system of its own.
// The process can then create files in the directory that no other process sees. It does not see
// entries that others create there later. It also does not see an entry that cannot be mounted.
func (r newRoot) copy(from, dir string) error {
	// The path of the open directory leads to its entries also while another file system hides them.
	open, err := os.OpenFile(from, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer open.Close()
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := unix.Mount("gauntlet", r.dir+dir, "tmpfs", 0, fmt.Sprintf("mode=%o", modeOf(info))); err != nil {
		return &os.PathError{Op: "mount tmpfs", Path: r.dir + dir, Err: err}
	}
	r.own[dir] = true
	for _, entry := range entries {
		source, target := fmt.Sprintf("/proc/self/fd/%d/%s", open.Fd(), entry.Name()), filepath.Join(r.dir, dir, entry.Name())
		// The entry may have been removed after ReadDir, and the kernel limits the number of mounts.
		if err := show(source, target, entry.Type()); err != nil && dir == "/" && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// modeOf returns the permissions of a directory, with the sticky bit as chmod(2) has it.
func modeOf(info fs.FileInfo) fs.FileMode {
	mode := info.Mode().Perm()
	if info.Mode()&fs.ModeSticky != 0 {
		mode |= unix.S_ISVTX
	}
	return mode
}

// show creates target and makes it look like the file source, which has the given type.
func show(source, target string, kind fs.FileMode) error {
	switch {
	case kind&fs.ModeSymlink != 0:
		link, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return os.Symlink(link, target)
	case kind.IsDir():
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			return err
		}
	}
	return mount(source, target, unix.MS_BIND|unix.MS_REC)
}

// mount calls the system call mount. Its error names the target.
func mount(source, target string, flags uintptr) error {
	if err := unix.Mount(source, target, "", flags, ""); err != nil {
		return &os.PathError{Op: "mount", Path: target, Err: err}
	}
	return nil
}
