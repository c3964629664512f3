// Command upstream builds the binaries of the embedded control plane from Go modules.
//
//	go run -C harness/upstream .
//
// It builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok. The file go.mod
// in this directory has their versions. The command writes the binaries to a cache directory
// outside of the source tree:
//
//	$XDG_CACHE_HOME/gauntlet/upstream/<os>-<arch>/<project>-<version>/<binary>
//
// It builds only the binaries that the cache does not have yet.
//
// With the flag -nodes, it builds the binaries for a kind node image instead. With the flag
// -edited, it builds only kube-controller-manager, from changed source files. It then writes
// the binary to the path in the flag -output.
//
// The command is a separate Go module, so that the main go.mod does not contain the dependencies of
// these binaries. It imports only the standard library, so that its own go.mod has no other
// dependencies.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	nodes := flag.Bool("nodes", false, "build the binaries for a kind node image instead of those of the embedded control plane")
	edited := flag.String("edited", "", "build only kube-controller-manager, with the files in this `directory` replacing the files at the same paths in k8s.io/kubernetes")
	output := flag.String("output", "", "the `file` to write the kube-controller-manager of -edited to")
	flag.Parse()
	var err error
	switch {
	case *edited != "":
		err = buildEdited(ctx, *edited, *output)
	case *nodes:
		err = run(ctx, forNodes)
	default:
		err = run(ctx, forEmbedded)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// run builds the binaries that the cache does not have, and prints the paths of all binaries. The
// argument wanted is forEmbedded or forNodes, and selects the binaries.
func run(ctx context.Context, wanted use) error {
	root, err := cacheRoot(os.Getenv)
	if err != nil {
		return err
	}
	versions, err := pinnedVersions(ctx)
	if err != nil {
		return err
	}
	targets, err := targetsFor(root, versions, wanted)
	if err != nil {
		return err
	}
	if len(missingTargets(targets)) > 0 {
		if err := buildMissing(ctx, root, targets, versions); err != nil {
			return err
		}
	}
	for _, t := range targets {
		fmt.Println(t.path)
	}
	return nil
}

// buildMissing locks the cache and builds the targets that are not in the cache. It checks which
// targets are missing after it has the lock, because another process may have built some of them.
func buildMissing(ctx context.Context, root string, targets []target, versions map[string]string) error {
	unlock, err := lock(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	missing := missingTargets(targets)
	if len(missing) == 0 {
		return nil
	}
	started := time.Now()
	if err := build(ctx, root, missing, versions, newProgress(os.Stderr)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "upstream: built %d binaries in %s\n", len(missing), time.Since(started).Round(time.Second))
	return nil
}

// cacheRoot returns the path of the cache directory for this operating system and architecture. The
// argument getenv is os.Getenv, or a replacement in tests.
func cacheRoot(getenv func(string) string) (string, error) {
	cache := getenv("XDG_CACHE_HOME")
	if cache == "" {
		home := getenv("HOME")
		if home == "" {
			return "", fmt.Errorf("no cache directory for the binaries: neither XDG_CACHE_HOME nor HOME is set")
		}
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return "", fmt.Errorf("cache directory %q is not an absolute path; set XDG_CACHE_HOME to an absolute path", cache)
	}
	return filepath.Join(cache, "gauntlet", "upstream", runtime.GOOS+"-"+runtime.GOARCH), nil
}
