package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Edited builds kube-controller-manager from changed source files, and writes the program to
// the absolute path program.
//
// Each file in the directory edited replaces the file with the same path in the module
// k8s.io/kubernetes. Edited uses an overlay of the go command, which rejects overlays for files
// in its module cache. The go.mod therefore replaces the module with a symbolic link to its
// directory in the cache.
func Edited(ctx context.Context, edited, program string) error {
	versions, err := pinnedVersions()
	if err != nil {
		return err
	}
	flags, err := linkerFlags(versions)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gauntlet-edited-")
	if err != nil {
		return fmt.Errorf("creating a temporary directory for the build: %w", err)
	}
	defer os.RemoveAll(dir)
	link, err := replaceKubernetes(ctx, dir)
	if err != nil {
		return err
	}
	overlay, err := overlayJSON(edited, link)
	if err != nil {
		return err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		return fmt.Errorf("writing the overlay file: %w", err)
	}
	args := []string{"build", "-trimpath", "-ldflags", flags, "-overlay", overlayFile, "-o", program, kubernetesModule + "/cmd/kube-controller-manager"}
	return goCommand(ctx, dir, args, io.Discard, &progress{})
}

// replaceKubernetes writes a module to dir in which a symbolic link replaces k8s.io/kubernetes. The
// link refers to the directory of k8s.io/kubernetes in the module cache.
func replaceKubernetes(ctx context.Context, dir string) (link string, err error) {
	if err := writeModule(dir); err != nil {
		return "", err
	}
	source, err := moduleDir(ctx, dir, kubernetesModule)
	if err != nil {
		return "", err
	}
	link = filepath.Join(dir, "kubernetes")
	if err := os.Symlink(source, link); err != nil {
		return "", err
	}
	_, err = output(ctx, dir, "mod", "edit", "-replace="+kubernetesModule+"="+link)
	return link, err
}

// overlayJSON returns the content of the file for the flag -overlay of `go build`.
//
// It makes each file in the directory edited replace the file with the same path in moduleDir.
// A file that does not exist in moduleDir is an error, because its path is most likely wrong.
func overlayJSON(edited, moduleDir string) ([]byte, error) {
	replace := map[string]string{}
	err := filepath.WalkDir(edited, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(edited, path)
		if err != nil {
			return err
		}
		original := filepath.Join(moduleDir, relative)
		if _, err := os.Stat(original); err != nil {
			return fmt.Errorf("edited file %s does not exist in module %s: %w", relative, kubernetesModule, err)
		}
		replace[original] = path
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the edited files: %w", err)
	}
	if len(replace) == 0 {
		return nil, fmt.Errorf("directory %s contains no files; expected edited files of module %s", edited, kubernetesModule)
	}
	return json.Marshal(map[string]any{"Replace": replace})
}
