// Command write writes the patched files of package runtimepatch, and the file overlay.json for
// "go build". Its argument is the directory for these files, which must have an absolute path.
//
// If the version of Go is unknown, the overlay replaces nothing, and the program prints a warning.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/internal/runtimepatch"
)

func main() {
	if len(os.Args) != 2 || !filepath.IsAbs(os.Args[1]) {
		fmt.Fprintf(os.Stderr, "write: found arguments %q; expected one, the absolute path of a directory\n", os.Args[1:])
		os.Exit(3)
	}
	dir := os.Args[1]
	err := runtimepatch.WriteOverlay(context.Background(), dir)
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "warning: Go's runtime is not patched, so a seed does not determine the history of a run in virtual time: %v\n", err)
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), []byte("{}"), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
