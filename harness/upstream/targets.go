package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// command is one program to build.
type command struct {
	binary  string // what the rest of gauntlet calls it
	pkg     string // its main package
	module  string // the module in go.mod that holds the package
	project string // names the cache directory, with the version
	use     use
}

// use is what a program is needed for.
type use int

const (
	forEmbedded use = 1 << iota // the embedded control plane
	forNodes                    // a kind node image, see harness/nodeimage
)

// commands is every program. The harness knows the names and versions of those
// of the embedded control plane (harness/cluster/embedded/binaries.go); a test
// there compares them with this module's go.mod.
var commands = []command{
	{"etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", "etcd", forEmbedded | forNodes},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes", "kubernetes", forEmbedded | forNodes},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes", "kubernetes", forEmbedded | forNodes},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "k8s.io/kubernetes", "kubernetes", forEmbedded | forNodes},
	{"kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok", "kwok", forEmbedded},
	{"kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", "k8s.io/kubernetes", "kubernetes", forNodes},
	{"kubelet", "k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes", "kubernetes", forNodes},
	{"kubeadm", "k8s.io/kubernetes/cmd/kubeadm", "k8s.io/kubernetes", "kubernetes", forNodes},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes", "kubernetes", forNodes},
}

// target is a command and where in the cache its binary belongs.
type target struct {
	command
	path string
}

// output is the file name that `go build -o <directory>/` gives the command:
// the last element of its package path, a major version suffix left out.
func (c command) output() string {
	name := path.Base(c.pkg)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(c.pkg))
	}
	return name
}

// pinnedVersions reads the version of every module that go.mod requires.
func pinnedVersions(ctx context.Context) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "edit", "-json").Output()
	if err != nil {
		return nil, fmt.Errorf("reading go.mod: %w", withStderr(err))
	}
	return parseRequirements(out)
}

// parseRequirements turns the output of `go mod edit -json` into module → version.
func parseRequirements(data []byte) (map[string]string, error) {
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(data, &mod); err != nil {
		return nil, fmt.Errorf("reading go.mod: %w", err)
	}
	versions := make(map[string]string, len(mod.Require))
	for _, r := range mod.Require {
		versions[r.Path] = r.Version
	}
	return versions, nil
}

// locate says where under root the binary of each command of that use belongs.
func locate(root string, versions map[string]string, wanted use) ([]target, error) {
	targets := make([]target, 0, len(commands))
	for _, c := range commands {
		if c.use&wanted == 0 {
			continue
		}
		version, ok := versions[c.module]
		if !ok {
			return nil, fmt.Errorf("go.mod does not require %s, which holds %s: run from harness/upstream", c.module, c.binary)
		}
		targets = append(targets, target{c, filepath.Join(root, c.project+"-"+version, c.binary)})
	}
	return targets, nil
}

// absent is the targets whose binary is not in the cache.
func absent(targets []target) []target {
	var missing []target
	for _, t := range targets {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, t)
		}
	}
	return missing
}

// linkerFlags stamps the version into the programs, as their own release builds
// do: a program that says v0.0.0-master would fail the version checks of its
// clients and put a wrong version in every report. A stamp for a package that a
// program does not contain is ignored by the linker.
func linkerFlags(versions map[string]string) (string, error) {
	kubernetes := versions["k8s.io/kubernetes"]
	major, rest, ok := strings.Cut(strings.TrimPrefix(kubernetes, "v"), ".")
	minor, _, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return "", fmt.Errorf("k8s.io/kubernetes %q in go.mod is not a version like v1.2.3", kubernetes)
	}
	flags := []string{"-s", "-w"}
	stamp := func(pkg, name, value string) {
		flags = append(flags, "-X", pkg+"."+name+"="+value)
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		stamp(pkg, "gitVersion", kubernetes)
		stamp(pkg, "gitMajor", major)
		stamp(pkg, "gitMinor", minor)
		stamp(pkg, "gitTreeState", "archive")
	}
	stamp("sigs.k8s.io/kwok/pkg/consts", "Version", strings.TrimPrefix(versions["sigs.k8s.io/kwok"], "v"))
	return strings.Join(flags, " "), nil
}

// withStderr adds what the command wrote to standard error to its error.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
