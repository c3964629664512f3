// Command upstream compiles the binaries of the embedded control plane (etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kwok) from their
// published Go modules, at the versions that this module's go.mod pins, into a
// cache outside the tree:
//
//	$XDG_CACHE_HOME/gauntlet/upstream/<os>-<arch>/<project>-<version>/<binary>
//
// What is there already is not built again. It is a module of its own so that
// the requirements of those programs stay out of the main go.mod, and it uses
// the standard library only, so that the module requires nothing else.
//
//	go run -C harness/upstream .
//
// With -nodes it builds what a kind node image is made of instead; most of that
// is the same. With -edited it builds a kube-controller-manager that differs in
// some files, and puts it where -output says.
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
	nodes := flag.Bool("nodes", false, "build the programs of a kind node image, not those of the embedded control plane")
	edited := flag.String("edited", "", "build kube-controller-manager alone, with the files in this `directory` in place of those at the same paths of k8s.io/kubernetes")
	output := flag.String("output", "", "the `file` that goes to")
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

// run builds what the cache lacks and prints where each binary is.
func run(ctx context.Context, wanted use) error {
	root, err := cacheRoot(os.Getenv)
	if err != nil {
		return err
	}
	versions, err := pinnedVersions(ctx)
	if err != nil {
		return err
	}
	targets, err := locate(root, versions, wanted)
	if err != nil {
		return err
	}
	if len(absent(targets)) > 0 {
		if err := buildAbsent(ctx, root, targets, versions); err != nil {
			return err
		}
	}
	for _, t := range targets {
		fmt.Println(t.path)
	}
	return nil
}

// buildAbsent builds, under the cache's lock, the targets that are still
// missing once the lock is held: whoever held it before may have built them.
func buildAbsent(ctx context.Context, root string, targets []target, versions map[string]string) error {
	unlock, err := lock(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	missing := absent(targets)
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

// cacheRoot is the directory that holds every binary for this platform.
func cacheRoot(getenv func(string) string) (string, error) {
	cache := getenv("XDG_CACHE_HOME")
	if cache == "" {
		home := getenv("HOME")
		if home == "" {
			return "", fmt.Errorf("neither XDG_CACHE_HOME nor HOME is set: no place for the binaries")
		}
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return "", fmt.Errorf("the cache directory %q is not an absolute path (XDG_CACHE_HOME)", cache)
	}
	return filepath.Join(cache, "gauntlet", "upstream", runtime.GOOS+"-"+runtime.GOARCH), nil
}
