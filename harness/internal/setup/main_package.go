package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// Package is the result of [MainPackage]: a program that was built from a Go main package. The
// package belongs to a module outside of gauntlet, such as that of an operator.
type Package struct {
	Executable string // the path of the built program
	ModuleDir  string // the directory of the module's source, which is read-only
}

// versionPattern matches the version of a module, such as v1.2.3 or the name of a branch.
var versionPattern = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._+/~]*$`)

// numericVersion matches a version that may lack the v at its beginning.
var numericVersion = regexp.MustCompile(`^\d+(\.\d+)+$`)

// CheckMainPackage returns an error if its argument is not the path of a package with a version. A valid
// argument is, for example, example.com/operator/cmd@v1.2.3. CheckMainPackage downloads nothing.
func CheckMainPackage(packageAtVersion string) error {
	name, version, ok := strings.Cut(packageAtVersion, "@")
	if !ok || !versionPattern.MatchString(version) || strings.Contains(version, "..") || module.CheckImportPath(name) != nil {
		return fmt.Errorf("found %q; expected the path of a main package and a version, such as example.com/operator@v1.2.3", packageAtVersion)
	}
	return nil
}

// MainPackage builds a main package of a module, such as example.com/operator/cmd@v1.2.3. The
// module's own replace directives apply, as in a checkout of the module. If a directive names a
// directory that contains another module, the downloaded module lacks this directory. MainPackage
// then uses the same version of the other module instead.
//
// The source of a version never changes, so MainPackage builds each version only once.
func MainPackage(ctx context.Context, packageAtVersion string) (Package, error) {
	if err := CheckMainPackage(packageAtVersion); err != nil {
		return Package{}, err
	}
	name, version, _ := strings.Cut(packageAtVersion, "@")
	if err := checkGo(); err != nil {
		return Package{}, err
	}
	p := newProgress(os.Stderr)
	p.setStep("downloading " + packageAtVersion)
	defer p.clear()
	from, err := moduleContaining(ctx, name, version)
	if err != nil {
		return Package{}, err
	}
	cache, err := cacheDir(os.Getenv)
	if err != nil {
		return Package{}, err
	}
	dir := filepath.Join(cache, "modules", platform, name+"@"+from.Version) // builds of other versions have their own locks
	built := Package{Executable: filepath.Join(dir, path.Base(name)), ModuleDir: from.Dir}
	if _, err := os.Stat(built.Executable); err == nil {
		return built, nil
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return Package{}, err
	}
	defer unlock()
	if _, err := os.Stat(built.Executable); err == nil { // another process built it while this one waited
		return built, nil
	}
	p.setStep("building " + packageAtVersion)
	if err := from.build(ctx, dir, "."+strings.TrimPrefix(name, from.Path), built.Executable, p); err != nil {
		return Package{}, fmt.Errorf("building %s: %w", packageAtVersion, err)
	}
	return built, nil
}

// moduleContaining downloads the module that contains a package, and returns where the module is.
// The argument name is the path of the package. The path of a module is a prefix of the paths of
// its packages. moduleContaining therefore tries name and each shorter prefix, and returns the
// first module that it can download.
func moduleContaining(ctx context.Context, name, version string) (downloadedModule, error) {
	var errs []error
	reasons := map[string]bool{}
	for prefix := name; prefix != "." && prefix != "/"; prefix = path.Dir(prefix) {
		found, err := downloadModule(ctx, prefix, version)
		if err == nil {
			return found, nil
		}
		if reason := errors.Unwrap(err).Error(); !reasons[reason] { // a proxy often has the same reason for each path
			reasons[reason] = true
			errs = append(errs, err)
		}
		if ctx.Err() != nil || !strings.Contains(path.Dir(prefix), "/") {
			break // no module has only a host name as its path
		}
	}
	err := inputfile.JoinReasons(errs...)
	if numericVersion.MatchString(version) {
		err = fmt.Errorf("%w; most versions begin with v, such as v%s", err, version)
	}
	return downloadedModule{}, err
}

// build builds a main package of the module. The argument relative is the package's path in the
// module's directory. The build happens in a temporary directory below root. build then renames the
// complete program to the path in the argument executable. The build uses copies of go.mod and
// go.sum, because an old go.sum may lack checksums that today's go command needs.
func (m downloadedModule) build(ctx context.Context, root, relative, executable string, p *progress) error {
	return inTempDir(root, func(temp string) error {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(m.Dir, name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if name == "go.mod" {
				if content, err = m.requireNested(content); err != nil {
					return err
				}
			}
			if err := os.WriteFile(filepath.Join(temp, name), content, 0o600); err != nil {
				return err
			}
		}
		return buildInto(ctx, temp, m.Dir, executable, p, "-modfile="+filepath.Join(temp, "go.mod"), "-mod=mod", relative)
	})
}

// requireNested returns the content of go.mod without replace directives that name a missing
// directory. A downloaded module lacks the directories that are modules of their own, and all
// directories outside of it. Projects release such modules together with m, so the result requires
// them at the version of m.
func (m downloadedModule) requireNested(goMod []byte) ([]byte, error) {
	mod, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, err
	}
	for _, replace := range mod.Replace {
		if !modfile.IsDirectoryPath(replace.New.Path) {
			continue
		}
		if _, err := os.Stat(filepath.Join(m.Dir, replace.New.Path, "go.mod")); err == nil {
			continue
		}
		old := replace.Old // DropReplace clears the directive
		if err := mod.DropReplace(old.Path, old.Version); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == old.Path }) {
			continue // the directive has no effect
		}
		if err := mod.AddRequire(old.Path, m.Version); err != nil {
			return nil, err
		}
	}
	mod.Cleanup()
	return mod.Format()
}
