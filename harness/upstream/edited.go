package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The import paths of the module and of the main package that buildEdited builds.
const (
	kubernetesModule         = "k8s.io/kubernetes"
	controllerManagerPackage = kubernetesModule + "/cmd/kube-controller-manager"
)

// buildEdited builds kube-controller-manager from changed source files, and writes the binary to
// output. Each file in the directory edited replaces the file with the same path in the module
// k8s.io/kubernetes.
//
// buildEdited uses an overlay, but the go command rejects an overlay for files in its module cache.
// A temporary go.mod therefore replaces the module with a symbolic link to its directory in the
// cache.
func buildEdited(ctx context.Context, edited, output string) error {
	if output == "" {
		return errors.New("-edited requires -output")
	}
	versions, err := pinnedVersions(ctx)
	if err != nil {
		return err
	}
	flags, err := linkerFlags(versions)
	if err != nil {
		return err
	}
	tempDir, err := os.MkdirTemp("", "gauntlet-edited-")
	if err != nil {
		return fmt.Errorf("creating a temporary directory for the build: %w", err)
	}
	defer os.RemoveAll(tempDir)
	moduleLink := filepath.Join(tempDir, "kubernetes")
	if err := linkModule(ctx, moduleLink); err != nil {
		return err
	}
	modfile, err := writeReplacedModfile(ctx, tempDir, moduleLink)
	if err != nil {
		return err
	}
	overlay, err := overlayJSON(edited, moduleLink)
	if err != nil {
		return err
	}
	overlayFile := filepath.Join(tempDir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		return fmt.Errorf("writing the overlay file: %w", err)
	}
	p := newProgress(os.Stderr)
	defer p.clear()
	p.setStep("building kube-controller-manager with edited files")
	return goCommand(ctx, []string{"build", "-trimpath", "-ldflags", flags, "-modfile", modfile, "-overlay", overlayFile, "-o", output, controllerManagerPackage}, io.Discard, p)
}

// linkModule creates the symbolic link link to the directory of k8s.io/kubernetes in the module
// cache.
func linkModule(ctx context.Context, link string) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f={{.Dir}}", kubernetesModule).Output()
	if err != nil {
		return fmt.Errorf("finding the directory of module %s: %w", kubernetesModule, withStderr(err))
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return fmt.Errorf("module %s is not in the Go module cache; run `go run .` without -edited first", kubernetesModule)
	}
	return os.Symlink(dir, link)
}

// writeReplacedModfile writes copies of go.mod and go.sum to tempDir, and returns the path of the
// new go.mod. The new go.mod replaces the module k8s.io/kubernetes with the directory moduleDir.
func writeReplacedModfile(ctx context.Context, tempDir, moduleDir string) (string, error) {
	modfile := filepath.Join(tempDir, "replaced.mod")
	for from, to := range map[string]string{"go.mod": modfile, "go.sum": filepath.Join(tempDir, "replaced.sum")} {
		content, err := os.ReadFile(from)
		if err != nil {
			return "", fmt.Errorf("%w; run this command in harness/upstream", err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return "", err
		}
	}
	if _, err := exec.CommandContext(ctx, "go", "mod", "edit", "-replace="+kubernetesModule+"="+moduleDir, modfile).Output(); err != nil {
		return "", fmt.Errorf("replacing module %s in go.mod: %w", kubernetesModule, withStderr(err))
	}
	return modfile, nil
}

// overlayJSON returns the content of the file for the flag -overlay of `go build`. With the
// overlay, each file in the directory edited replaces the file with the same path in moduleDir. A
// file that does not exist in moduleDir is an error, because its path is most likely wrong.
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
