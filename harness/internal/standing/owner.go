package standing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// ownerFile is the name of the file in a cluster's directory that identifies the process that owns
// the cluster. The content of the file is a process.Identity. From this identity, gauntlet finds
// out whether a cluster is in use or left behind.
//
// If a host process runs the cluster, the owner is the host process. Otherwise, the owner is the
// process that has created the directory.
const ownerFile = "owner"

// owner is the content of a cluster's owner file, and whether the process that the file names
// still runs.
type owner struct {
	dir       string            // directory of the cluster's files
	process   process.Identity  // identity of the process, from the owner file
	existence process.Existence // whether the process is still running
}

// writeOwner writes the owner file in a cluster's directory. The owner is this process.
func writeOwner(dir string) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	// The rename is atomic, so a concurrent List never reads a partial file.
	path := filepath.Join(dir, ownerFile)
	if err := os.WriteFile(path+".new", []byte(self.String()), 0o600); err != nil {
		return fmt.Errorf("recording in %s which process owns the directory: %w", dir, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("recording in %s which process owns the directory: %w", dir, err)
	}
	return nil
}

// ownersOf returns the owners of a provider's clusters. The owner is the process that started the
// cluster, and the owner file in the cluster's directory names the owner. The argument root is the
// path of the directory that contains the directories of all clusters; see [Root]. ownersOf ignores
// directories without an owner file.
func ownersOf(root, provider string) ([]owner, error) {
	paths, err := fs.Glob(os.DirFS(root), provider+"-*/"+ownerFile)
	if err != nil {
		return nil, err
	}
	var owners []owner
	for _, path := range paths {
		o, err := ownerOf(filepath.Join(root, filepath.Dir(path)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has removed the directory
		}
		if err != nil {
			return nil, err
		}
		owners = append(owners, o)
	}
	return owners, nil
}

// ownerOf returns the owner of the cluster whose directory is dir, as the owner file says. It also
// checks whether the owner is still running.
func ownerOf(dir string) (owner, error) {
	path := filepath.Join(dir, ownerFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return owner{}, err
	}
	identity, err := process.ParseIdentity(string(data))
	if err != nil {
		return owner{}, fmt.Errorf("reading the owner file %s of the cluster: %w", path, err)
	}
	existence, err := identity.Existence()
	return owner{dir, identity, existence}, err
}
