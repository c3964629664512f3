package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// kubernetesModule is the path of the Go module from which gauntlet builds the Kubernetes programs.
const kubernetesModule = "k8s.io/kubernetes"

// writeModule writes to dir the go.mod and go.sum of a module that requires etcd, Kubernetes and
// KWOK. The go command builds their programs in this module.
func writeModule(dir string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), upstreamMod, 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), upstreamSum, 0o644))
}

// pinnedVersions returns the versions of etcd, Kubernetes and KWOK that gauntlet builds, by Go
// module path. It reads them from the embedded file upstream.mod.
func pinnedVersions() (map[string]string, error) {
	mod, err := modfile.Parse("upstream.mod", upstreamMod, nil)
	if err != nil {
		return nil, err
	}
	versions := make(map[string]string, len(mod.Require))
	for _, r := range mod.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions, nil
}

// KubernetesSource returns the directory in the Go module cache with the source of
// k8s.io/kubernetes.
func KubernetesSource(ctx context.Context) (string, error) {
	dir, remove, err := guardedTempDir("", "gauntlet-setup-")
	if err != nil {
		return "", fmt.Errorf("creating a temporary directory for the Go module of upstream programs: %w", err)
	}
	defer remove()
	if err := writeModule(dir); err != nil {
		return "", err
	}
	return moduleDir(ctx, dir, kubernetesModule)
}

// moduleDir returns the directory of a module in the Go module cache. The argument dir contains
// the go.mod file that requires the module.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	found, err := output(ctx, dir, "list", "-m", "-f={{.Dir}}", module)
	if err != nil {
		return "", fmt.Errorf("finding the directory of module %s: %w", module, err)
	}
	if found == "" {
		return "", fmt.Errorf("module %s is not in the Go module cache; run `gauntlet setup`", module)
	}
	return found, nil
}

// output runs the go command in a directory. It returns the command's standard output without
// white space at both ends, even if the command fails.
func output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), withStderr(err)
}

// downloadedModule describes a module in the Go module cache, as "go mod download -json" prints
// it.
type downloadedModule struct{ Path, Version, Dir, Error string }

// downloadModule downloads a version of a module into the Go module cache, and returns where the
// module is.
func downloadModule(ctx context.Context, path, version string) (downloadedModule, error) {
	text, err := output(ctx, os.TempDir(), "mod", "download", "-json", path+"@"+version)
	var found downloadedModule
	switch decodeErr := json.Unmarshal([]byte(text), &found); {
	case found.Error != "":
		err = errors.New(downloadReason(path, version, found.Error))
	case err == nil && decodeErr != nil:
		err = fmt.Errorf("reading the output of `go mod download -json`: %w", decodeErr)
	}
	if err != nil {
		return downloadedModule{}, fmt.Errorf("downloading module %s %s: %w", path, version, err)
	}
	return found, nil
}

// proxyPattern matches what the go command says about a failed request to a module proxy.
var proxyPattern = regexp.MustCompile(`(^|: )reading (https?://[^/\s]*)\S*: `)

// downloadReason returns in one line why the go command cannot download a version of a module. The
// argument text is the error of the go command. The result names the host of a module proxy, but not the
// module.
func downloadReason(path, version, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "module "), path)
	text = strings.TrimPrefix(strings.TrimPrefix(text, "@"+version), ": ")
	return proxyPattern.ReplaceAllString(text, "$1$2: ")
}

// withStderr returns the standard error of a failed command as an error. The argument err is the error of
// exec.Cmd.Output. If a signal ended the command, the result contains err. withStderr returns other
// errors without the name of the operation.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		text := strings.TrimSpace(string(exit.Stderr))
		if exit.Exited() { // the text says more than the exit status
			return errors.New(strings.TrimPrefix(text, "go: "))
		}
		if !strings.Contains(text, "\n") {
			return fmt.Errorf("%w: %s", err, text)
		}
		return fmt.Errorf("%w\n%s", err, text)
	}
	return inputfile.FileError(err)
}

// checkGo returns an error if no go command is in PATH, so that a build fails with a clear message.
func checkGo() error {
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("%w; expected Go 1.26 or later, which builds the programs; install Go, or add its directory to PATH", ErrNoGo)
	}
	return nil
}
