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

// Edited builds kube-controller-manager from edited source files, for example for a mutant. The
// argument program is the absolute path of the executable to write.
//
// The argument edited is the directory with the edited files. Each edited file replaces the file
// with the same relative path in the module k8s.io/kubernetes. For this replacement, Edited uses an
// overlay of the go command. The go command rejects overlays for files in the module cache. A
// replace directive therefore makes the go command read the module through a symbolic link.
func Edited(ctx context.Context, edited, program string) error {
	versions, err := pinnedVersions()
	if err != nil {
		return err
	}
	flags, err := linkerFlags(versions)
	if err != nil {
		return err
	}
	dir, remove, err := guardedTempDir("", "gauntlet-edited-")
	if err != nil {
		return fmt.Errorf("creating a temporary directory for the build: %w", err)
	}
	defer remove()
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
		return fmt.Errorf("writing the overlay file for go build: %w", err)
	}
	args := []string{"build", "-ldflags", flags, "-overlay", overlayFile, "-o", program, kubernetesModule + "/cmd/kube-controller-manager"}
	return goCommand(ctx, dir, forThisMachine, args, io.Discard, &progress{})
}

// replaceKubernetes writes a Go module to dir that replaces k8s.io/kubernetes by a symbolic link.
// The link points to the source of k8s.io/kubernetes in the module cache. replaceKubernetes returns
// the path of the link.
func replaceKubernetes(ctx context.Context, dir string) (link string, err error) {
	if err := writeModule(dir); err != nil {
		return "", err
	}
	source, err := moduleDir(ctx, dir, kubernetesModule)
	if err != nil {
		return "", err
	}
	return LinkKubernetes(ctx, dir, source)
}

// LinkKubernetes makes a symbolic link to the source code of k8s.io/kubernetes, and returns the
// path of the link. The argument source is the directory with this code. The argument dir is the
// directory for the link, as an absolute path. LinkKubernetes adds a replace directive to the
// go.mod file in dir, so that builds use the link.
func LinkKubernetes(ctx context.Context, dir, source string) (link string, err error) {
	link = filepath.Join(dir, "kubernetes")
	if err := os.Symlink(source, link); err != nil {
		return "", err
	}
	_, err = output(ctx, dir, "mod", "edit", "-replace="+kubernetesModule+"="+link)
	return link, err
}

// overlayJSON returns the content of the overlay file that "go build -overlay" reads.
//
// The argument edited is the directory with the edited files. Each of them replaces the file with
// the same relative path in moduleDir, the directory of the module. overlayJSON returns an error if
// moduleDir has no such file, because the path is then most likely wrong.
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
		return nil, fmt.Errorf("reading the edited files in %s: %w", edited, err)
	}
	if len(replace) == 0 {
		return nil, fmt.Errorf("directory %s contains no files; expected edited files of module %s", edited, kubernetesModule)
	}
	return json.Marshal(map[string]any{"Replace": replace})
}
