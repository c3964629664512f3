package standing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// ownerFile in a cluster's directory holds the process.Identity of who made it:
// for an embedded cluster its keeper.
const ownerFile = "owner"

// owner is who made a directory.
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
	// In one step: whoever lists must not read half of it.
	path := filepath.Join(dir, ownerFile)
	if err := os.WriteFile(path+".new", []byte(self.String()), 0o600); err != nil {
		return fmt.Errorf("claiming a cluster's directory: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("claiming a cluster's directory: %w", err)
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
			continue // it went in this moment
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
