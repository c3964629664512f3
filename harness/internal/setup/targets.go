package setup

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
)

// command describes one program that this package can build from upstream modules.
type command struct {
	binary  string // the file name of the program in the cache
	pkg     string // the import path of the main package
	module  string // the path of the module in upstream.mod that contains the package
	project string // the first part of the name of the cache directory <project>-<version>
	use     use    // the use for which the program is built
}

// use says what needs a program: the embedded control plane, a kind node image, or both. It is a
// bit mask.
type use int

const (
	forEmbedded use = 1 << iota // the embedded control plane needs the program
	forNodes                    // a kind node image needs the program; see harness/nodeimage
)

// commands has all programs that this package can build from upstream modules.
//
// harness/internal/cluster/embedded/binaries.go also has the names and versions of the programs of
// the embedded control plane. A test in that directory compares its versions with upstream.mod.
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

// target is a program to build, with the path in the cache to which the program is moved.
type target struct {
	command
	path string
}

// output returns the file name under which "go build -o DIRECTORY/" writes the program.
//
// The name is the last element of the import path. If the last element is a major version such as
// v3, the name is the element before.
func (c command) output() string {
	name := path.Base(c.pkg)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(c.pkg))
	}
	return name
}

// targetsFor returns the programs that one use, such as the embedded control plane, needs. The
// argument versions has the version of each module. The argument root is the cache directory, which
// will contain the programs.
func targetsFor(root string, versions map[string]string, wanted use) ([]target, error) {
	targets := make([]target, 0, len(commands))
	for _, c := range commands {
		if c.use&wanted == 0 {
			continue
		}
		version, ok := versions[c.module]
		if !ok {
			return nil, fmt.Errorf("upstream.mod does not require module %s, from which gauntlet builds %s", c.module, c.binary)
		}
		targets = append(targets, target{c, filepath.Join(root, c.project+"-"+version, c.binary)})
	}
	return targets, nil
}

// missingTargets returns those targets that are no executable files in the cache and therefore must
// be built. The programs are for the given architecture.
func missingTargets(targets []target, architecture string) []target {
	var missing []target
	for _, t := range targets {
		if executable.CheckFor(t.path, architecture) != nil {
			missing = append(missing, t)
		}
	}
	return missing
}

// linkerFlags returns linker flags that set the version which each program reports.
//
// The release builds of Kubernetes and kwok use the same flags. Without the flags, a program
// reports v0.0.0-master. Clients then refuse the version, and reports contain a wrong version. The
// linker ignores flags for variables that a program does not have.
func linkerFlags(versions map[string]string) (string, error) {
	kubernetes := versions["k8s.io/kubernetes"]
	major, rest, ok := strings.Cut(strings.TrimPrefix(kubernetes, "v"), ".")
	minor, _, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return "", fmt.Errorf("version %q of k8s.io/kubernetes in upstream.mod: expected the form v1.2.3", kubernetes)
	}
	flags := []string{"-s", "-w"}
	setVariable := func(pkg, name, value string) {
		flags = append(flags, "-X", pkg+"."+name+"="+value)
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		setVariable(pkg, "gitVersion", kubernetes)
		setVariable(pkg, "gitMajor", major)
		setVariable(pkg, "gitMinor", minor)
		setVariable(pkg, "gitTreeState", "archive")
	}
	setVariable("sigs.k8s.io/kwok/pkg/consts", "Version", strings.TrimPrefix(versions["sigs.k8s.io/kwok"], "v"))
	return strings.Join(flags, " "), nil
}
