package standing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// ownerFile is the file in a cluster's directory that contains the process.Identity of
// its owner. The owner of a hosted cluster is its host process. The owner of any
// other directory is the process that created it.
const ownerFile = "owner"

// owner is the owner of a cluster's directory.
type owner struct {
	dir       string
	process   process.Identity
	existence process.Existence
}

// writeOwner makes this process the owner of a directory.
func writeOwner(dir string) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	// The rename is atomic, so a concurrent List never reads a partial file.
	path := filepath.Join(dir, ownerFile)
	if err := os.WriteFile(path+".new", []byte(self.String()), 0o600); err != nil {
		return fmt.Errorf("writing the owner file of the cluster: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the owner file of the cluster: %w", err)
	}
	return nil
}

// ownersOf returns the owners of all directories of a provider.
func ownersOf(root, provider string) ([]owner, error) {
	paths, err := filepath.Glob(filepath.Join(root, provider+"-*", ownerFile))
	if err != nil {
		return nil, err
	}
	var owners []owner
	for _, path := range paths {
		o, err := ownerOf(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		owners = append(owners, o)
	}
	return owners, nil
}

func ownerOf(dir string) (owner, error) {
	path := filepath.Join(dir, ownerFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return owner{}, err
	}
	identity, err := process.ParseIdentity(string(data))
	if err != nil {
		return owner{}, fmt.Errorf("%s: %w", path, err)
	}
	existence, err := identity.Existence()
	return owner{dir, identity, existence}, err
}
