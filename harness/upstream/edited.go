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

// kubernetes is the module that may be edited, controllerManager the program that
// is built from it then.
const (
	kubernetes        = "k8s.io/kubernetes"
	controllerManager = kubernetes + "/cmd/kube-controller-manager"
)

// buildEdited builds kube-controller-manager with the files under edited in place
// of those at the same paths of its module, and puts it at output.
//
// The go command lays nothing over its module cache, and goes by the path alone: so
// the module is replaced by a symbolic link to where it is.
func buildEdited(ctx context.Context, edited, output string) error {
	if output == "" {
		return errors.New("-edited: expected -output as well")
	}
	versions, err := pinnedVersions(ctx)
	if err != nil {
		return err
	}
	flags, err := linkerFlags(versions)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "gauntlet-edited-")
	if err != nil {
		return fmt.Errorf("making a directory to build in: %w", err)
	}
	defer os.RemoveAll(scratch)
	module := filepath.Join(scratch, "kubernetes")
	if err := linkModule(ctx, module); err != nil {
		return err
	}
	modfile, err := replaced(ctx, scratch, module)
	if err != nil {
		return err
	}
	overlay, err := overlayOf(edited, module)
	if err != nil {
		return err
	}
	overlayFile := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	p := newProgress(os.Stderr)
	defer p.done()
	p.stage("building kube-controller-manager with edited files")
	return goCommand(ctx, []string{"build", "-trimpath", "-ldflags", flags, "-modfile", modfile, "-overlay", overlayFile, "-o", output, controllerManager}, io.Discard, p)
}

// linkModule makes a symbolic link to where the module is.
func linkModule(ctx context.Context, link string) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f={{.Dir}}", kubernetes).Output()
	if err != nil {
		return fmt.Errorf("looking for %s: %w", kubernetes, withStderr(err))
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return fmt.Errorf("%s is not in the module cache: expected `go run .` to have put it there", kubernetes)
	}
	return os.Symlink(dir, link)
}

// replaced writes a go.mod, with its go.sum, that takes the module from a directory.
func replaced(ctx context.Context, scratch, module string) (string, error) {
	modfile := filepath.Join(scratch, "replaced.mod")
	for from, to := range map[string]string{"go.mod": modfile, "go.sum": filepath.Join(scratch, "replaced.sum")} {
		content, err := os.ReadFile(from)
		if err != nil {
			return "", fmt.Errorf("run from harness/upstream: %w", err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return "", err
		}
	}
	if _, err := exec.CommandContext(ctx, "go", "mod", "edit", "-replace="+kubernetes+"="+module, modfile).Output(); err != nil {
		return "", fmt.Errorf("replacing %s: %w", kubernetes, withStderr(err))
	}
	return modfile, nil
}

// overlayOf says, as the go command reads it, which files of a module are replaced
// by those under edited. Each has to be there: one that is new is a wrong path.
func overlayOf(edited, module string) ([]byte, error) {
	replace := map[string]string{}
	err := filepath.WalkDir(edited, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(edited, path)
		if err != nil {
			return err
		}
		original := filepath.Join(module, inside)
		if _, err := os.Stat(original); err != nil {
			return fmt.Errorf("%s: expected a file of %s: %w", inside, kubernetes, err)
		}
		replace[original] = path
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the edited files: %w", err)
	}
	if len(replace) == 0 {
		return nil, fmt.Errorf("%s: expected edited files in it", edited)
	}
	return json.Marshal(map[string]any{"Replace": replace})
}
