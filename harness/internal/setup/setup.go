// Package setup builds the programs that gauntlet runs from Go modules.
//
// [Upstream] builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok. The
// file upstream.mod has the versions of these programs. The file is embedded, so that an installed
// gauntlet needs no source tree. The programs are written to a cache directory:
//
//	$XDG_CACHE_HOME/gauntlet/upstream/<os>-<arch>/<project>-<version>/<program>
//
// [Own] finds or builds the programs of gauntlet's own module. [MainPackage] and [Linked] build
// programs under test. A program of a fixed version stays in the cache, and is built only once. A
// build needs the go command.
package setup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// upstreamMod and upstreamSum are the go.mod and go.sum of a module that requires etcd, Kubernetes
// and KWOK.
//
// The files are not named go.mod and go.sum, because a go.mod file would exclude the directory from
// gauntlet's module. The script named pin, in this directory, changes the versions.
var (
	//go:embed upstream.mod
	upstreamMod []byte
	//go:embed upstream.sum
	upstreamSum []byte
)

// Upstream builds the missing programs of the embedded control plane. It returns the paths of all
// programs of the embedded control plane.
//
// On 2 cores, the first build takes about 7 minutes. Progress is written to standard error.
func Upstream(ctx context.Context) ([]string, error) { return UpstreamFor(ctx, runtime.GOARCH) }

// UpstreamFor is like [Upstream] for Linux machines of another architecture, such as "arm64".
func UpstreamFor(ctx context.Context, architecture string) ([]string, error) {
	return buildAll(ctx, forEmbedded, architecture)
}

// Nodes builds the programs that a node image for kind clusters contains, such as kubelet. It does
// not build programs that are in the cache already. It returns the paths of all programs of the
// node image.
func Nodes(ctx context.Context) ([]string, error) { return buildAll(ctx, forNodes, runtime.GOARCH) }

// buildAll builds those programs for one use that are missing in the cache. A use is, for example,
// the embedded control plane. The programs are for the given architecture. buildAll returns the paths
// of all programs for this use.
func buildAll(ctx context.Context, wanted use, architecture string) ([]string, error) {
	cache, err := cacheDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(cache, "upstream", runtime.GOOS+"-"+architecture)
	versions, err := pinnedVersions()
	if err != nil {
		return nil, err
	}
	targets, err := targetsFor(root, versions, wanted)
	if err != nil {
		return nil, err
	}
	if len(missingTargets(targets, architecture)) > 0 {
		if err := buildMissing(ctx, root, targets, architecture, versions); err != nil {
			return nil, fmt.Errorf("building etcd, Kubernetes and KWOK: %w", err)
		}
	}
	paths := make([]string, 0, len(targets))
	for _, t := range targets {
		paths = append(paths, t.path)
	}
	return paths, nil
}

// buildMissing locks the cache and builds those targets that are missing in the cache.
//
// Another process may build some of the targets while this process waits for the lock.
// buildMissing therefore looks for missing targets when it holds the lock.
func buildMissing(ctx context.Context, root string, targets []target, architecture string, versions map[string]string) error {
	if err := checkGo(); err != nil {
		return err
	}
	unlock, err := lock(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	missing := missingTargets(targets, architecture)
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, "setup: building %d programs of etcd, Kubernetes and KWOK; this takes some minutes, once per machine\n", len(missing))
	started := time.Now()
	if err := build(ctx, root, missing, architecture, versions, newProgress(os.Stderr)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "setup: built %d programs in %s\n", len(missing), time.Since(started).Round(time.Second))
	return nil
}

// platform is the operating system and architecture for which the programs are built: those of
// this process.
const platform = runtime.GOOS + "-" + runtime.GOARCH

// ErrNoGo means that the programs cannot be built on this machine.
var ErrNoGo = errors.New("found no go command in PATH")

// ErrNoCache means that the environment variables name no cache directory. Nothing can run then.
var ErrNoCache = errors.New("finding the cache directory of the programs")

// cacheDir returns the path of gauntlet's cache directory. The argument getenv reads an
// environment variable: os.Getenv, or a replacement in tests.
func cacheDir(getenv func(string) string) (string, error) {
	cache, variable := getenv("XDG_CACHE_HOME"), "XDG_CACHE_HOME"
	if cache == "" {
		variable = "HOME"
		home := getenv("HOME")
		if home == "" {
			return "", fmt.Errorf("%w: neither XDG_CACHE_HOME nor HOME is set; expected an absolute path in one of them", ErrNoCache)
		}
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return "", fmt.Errorf("%w: found %q; expected an absolute path in %s", ErrNoCache, getenv(variable), variable)
	}
	dir := filepath.Join(cache, "gauntlet")
	for _, path := range []string{cache, dir, filepath.Join(dir, "upstream")} {
		if err := inputfile.CheckDirectory(path); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrNoCache, variable, err)
		}
	}
	return dir, nil
}
