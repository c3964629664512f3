package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// The programs of gauntlet's own module that [Own] finds or builds.
const (
	WorkloadControllerManager = "workload-controller-manager" // the program with our controllers
	StandIn                   = "standin"                     // the program that workload pods run on real kubelets
)

// ownPackages has the main package of each program that [Own] can build, as a directory in
// gauntlet's module.
var ownPackages = map[string]string{
	WorkloadControllerManager: "./controllers/cmd/workload-controller-manager",
	StandIn:                   "./harness/cmd/standin",
}

// ownModule is the path of the Go module that contains gauntlet and the programs that [Own] builds.
const ownModule = "github.com/kube-gauntlet/gauntlet"

// Own returns the path of a program of gauntlet's own module. The argument gauntlet is the path of
// the gauntlet executable. The argument program is the name of the program, such as [StandIn].
//
// After "make build", the program is in the directory of the gauntlet executable. If it is not
// there, Own builds it from the version of the module that the running executable names.
//
// An executable that was built in a source tree names no such version. Own then returns the path in
// gauntlet's directory, although no program exists there.
func Own(ctx context.Context, gauntlet, program string) (string, error) {
	sibling := filepath.Join(filepath.Dir(gauntlet), program)
	if _, err := os.Stat(sibling); err == nil {
		return sibling, nil
	}
	module, ok := moduleOfThisProgram()
	if !ok {
		return sibling, nil
	}
	path, err := buildOwn(ctx, module, program)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", program, err)
	}
	return path, nil
}

// moduleOfThisProgram returns gauntlet's module and version, as the running executable records
// them. The result ok is false if the executable was built in a source tree of gauntlet.
func moduleOfThisProgram() (module debug.Module, ok bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return debug.Module{}, false
	}
	return moduleIn(info)
}

// moduleIn returns the module of gauntlet that the build information of an executable names. The
// result ok is false if the executable was built in a source tree of gauntlet. The module then has
// no version to download.
func moduleIn(info *debug.BuildInfo) (module debug.Module, ok bool) {
	for _, dependency := range info.Deps {
		if dependency.Path == ownModule {
			return *dependency, true
		}
	}
	if info.Main.Path != ownModule {
		return debug.Module{}, false
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs" {
			return debug.Module{}, false
		}
	}
	return info.Main, info.Main.Replace != nil || strings.HasPrefix(info.Main.Version, "v")
}

// buildOwn builds a program of gauntlet's module into the cache, and returns the program's path.
//
// It builds a released version of the module only once, because the source of a version never
// changes. If the module is a directory, it builds the program each time, because files may have
// changed.
func buildOwn(ctx context.Context, module debug.Module, program string) (string, error) {
	cache, err := cacheDir(os.Getenv)
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "own", platform)
	if module.Replace != nil {
		module = *module.Replace
	}
	path := filepath.Join(root, module.Version, program)
	if isDirectory(module) {
		path = filepath.Join(root, "devel", program)
	} else if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := checkGo(); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, root)
	if err != nil {
		return "", err
	}
	defer unlock()
	source, err := sourceOf(ctx, module)
	if err != nil {
		return "", err
	}
	return path, buildProgram(ctx, root, source, program, path)
}

// buildProgram builds a program of gauntlet's module. The argument source is the directory of the
// module. The build happens in a temporary directory below root. buildProgram then renames the
// complete program to path, which is in the cache.
func buildProgram(ctx context.Context, root, source, program, path string) error {
	p := newProgress(os.Stderr)
	defer p.clear()
	p.setStep("building " + program)
	return inTempDir(root, func(temp string) error {
		return buildInto(ctx, temp, source, path, p, ownPackages[program])
	})
}

// inTempDir calls a function with the path of a new temporary directory, and returns the function's
// error. The directory is for a build, and is below root. inTempDir removes the directory
// afterwards.
func inTempDir(root string, call func(temp string) error) error {
	temp, err := os.MkdirTemp(root, tempPrefix)
	if err != nil {
		return fmt.Errorf("creating a temporary directory for the build: %w", err)
	}
	defer os.RemoveAll(temp)
	return call(temp)
}

// buildInto builds a program in the directory temp, and then renames the complete program to path.
// The argument source is the directory of the program's module. The last arguments are those of `go
// build`, which end with the package to build.
func buildInto(ctx context.Context, temp, source, path string, p *progress, arguments ...string) error {
	p.setStep("listing the packages to compile")
	stale, err := stalePackages(ctx, source, forThisMachine, arguments, p)
	if err != nil {
		return err
	}
	p.setPackages(stale)
	built := filepath.Join(temp, "program")
	command := append([]string{"build", "-v", "-ldflags=-s -w", "-o", built}, arguments...)
	if err := goCommand(ctx, source, forThisMachine, command, io.Discard, p); err != nil {
		return err
	}
	return install(built, path)
}

// isDirectory reports whether a replace directive makes the module a local directory. Its
// version is then empty or "(devel)", not a release such as v1.2.3.
func isDirectory(module debug.Module) bool { return !strings.HasPrefix(module.Version, "v") }

// sourceOf returns the directory with the source of gauntlet's module. It downloads a released
// version of the module into the Go module cache. If a replace directive makes the module a local
// directory, sourceOf returns this directory. A relative path is relative to the go.mod file of the
// working directory.
func sourceOf(ctx context.Context, module debug.Module) (string, error) {
	if isDirectory(module) {
		if filepath.IsAbs(module.Path) {
			return module.Path, nil
		}
		main, err := output(ctx, ".", "env", "GOMOD")
		if err != nil {
			return "", err
		}
		if main == "" || main == os.DevNull {
			return "", fmt.Errorf("the relative path %s replaces module %s, but no go.mod file is above the working directory; run gauntlet in the module with this replace directive", module.Path, ownModule)
		}
		return filepath.Join(filepath.Dir(main), module.Path), nil
	}
	downloaded, err := downloadModule(ctx, module.Path, module.Version)
	return downloaded.Dir, err
}
