package setup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/runtimepatch"
)

// virtualModule is the path of a directory in gauntlet's source tree. It contains the Go module of
// the program gauntlet-virtual.
const virtualModule = "harness/virtual"

// Linked builds a copy of the program gauntlet-virtual that contains a Go package with the
// controllers under test. It returns the path of the program, which is in the cache. The argument
// tree is the root directory of gauntlet's source tree. The argument dir is the directory of the
// package.
//
// The package must have the function Run(context.Context, *rest.Config) error. It is compiled with
// the versions of Kubernetes' modules that gauntlet-virtual has, not with those in its own go.mod.
func Linked(ctx context.Context, tree, dir string) (string, error) {
	if err := checkGo(); err != nil {
		return "", err
	}
	cache, err := cacheDir(os.Getenv)
	if err != nil {
		return "", err
	}
	tree, err = filepath.Abs(tree)
	if err != nil {
		return "", err
	}
	subject, err := findPackage(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("subject go:%s: %w", dir, err)
	}
	root := filepath.Join(cache, "linked", platform)
	program := filepath.Join(root, fmt.Sprintf("%x", sha256.Sum256([]byte(tree+"\n"+dir)))[:16], virtual.Program)
	unlock, err := lock(ctx, root)
	if err != nil {
		return "", err
	}
	defer unlock()
	p := newProgress(os.Stderr)
	defer p.clear()
	p.setStep("building " + virtual.Program + " with the package " + subject.ImportPath)
	err = inTempDir(root, func(temp string) error { return subject.link(ctx, tree, temp, program, p) })
	if err != nil {
		return "", fmt.Errorf("subject go:%s: %w", dir, err)
	}
	return program, nil
}

// goPackage describes a Go package with controllers under test, as "go list -json" prints the
// package.
type goPackage struct {
	ImportPath, Name, Dir string
	GoFiles, CgoFiles     []string
	Module                struct{ Dir string }
}

// findPackage returns the Go package in the directory dir. It returns an error if gauntlet-virtual
// cannot import the package. This is so for package main, and for a package outside of a module.
func findPackage(ctx context.Context, dir string) (goPackage, error) {
	var found goPackage
	text, err := output(ctx, dir, "list", "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,Module", ".")
	if err == nil {
		err = json.Unmarshal([]byte(text), &found)
	}
	switch {
	case err != nil && strings.Contains(err.Error(), "go.mod file not found"):
		return found, errNoModule
	case err != nil:
		return found, err
	case found.Name == "main":
		return found, errors.New("found package main, which no program can import; expected a package with the function Run")
	case found.Module.Dir == "":
		return found, errNoModule
	}
	return found, found.checkRun()
}

// errNoModule is the error for a Go package without a module.
var errNoModule = errors.New("found a package outside of a module; expected a directory with a go.mod file in it or above it")

// checkRun returns an error if the package has no function Run with the right number of parameters
// and results. It ignores files that it cannot parse. For those, the compiler reports a better error.
func (g *goPackage) checkRun() error {
	const expected = "expected the function Run(ctx context.Context, config *rest.Config) error"
	for _, name := range slices.Concat(g.GoFiles, g.CgoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(g.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				if decl.Tok == token.VAR && declares(decl, "Run") {
					return nil
				}
			case *ast.FuncDecl:
				if decl.Recv != nil || decl.Name.Name != "Run" {
					continue
				}
				if decl.Type.Params.NumFields() != 2 || decl.Type.Results.NumFields() != 1 {
					return fmt.Errorf("found the function Run of package %s with %d parameters and %d results; %s", g.ImportPath, decl.Type.Params.NumFields(), decl.Type.Results.NumFields(), expected)
				}
				return nil
			}
		}
	}
	return fmt.Errorf("found no function Run in package %s; %s", g.ImportPath, expected)
}

// declares reports whether a declaration of variables declares the given name.
func declares(decl *ast.GenDecl, name string) bool {
	for _, spec := range decl.Specs {
		if values, ok := spec.(*ast.ValueSpec); ok && slices.ContainsFunc(values.Names, func(i *ast.Ident) bool { return i.Name == name }) {
			return true
		}
	}
	return false
}

// link builds a copy of the program gauntlet-virtual that contains the Go package g. The package g
// has the controllers under test, and the program calls its function Run. The argument program is
// the path of the executable to write. The argument tree is the root directory of gauntlet's source
// tree. The argument temp is a directory for the files that the build needs.
func (g *goPackage) link(ctx context.Context, tree, temp, program string, p *progress) error {
	module := filepath.Join(tree, filepath.FromSlash(virtualModule))
	workspace := filepath.Join(temp, "go.work")
	if err := writeWorkspace(workspace, module, tree, g.Module.Dir); err != nil {
		return err
	}
	source := filepath.Join(temp, "linked.go")
	text := fmt.Sprintf("package subjects\n\nimport user %q\n\nfunc init() { linkedPackage = user.Run }\n", g.ImportPath)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return err
	}
	replaced := map[string]string{filepath.Join(module, "subjects", "linked.go"): source}
	// An unknown version of Go has no patches. Runs of one seed then have different histories.
	patched, _ := runtimepatch.Write(ctx, filepath.Join(temp, "runtime"))
	maps.Copy(replaced, patched)
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	path := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	args := []string{"build", "-tags=" + virtual.OnlyOurs, "-ldflags=-s -w", "-overlay=" + path, "-o", program, "./cmd/" + virtual.Program}
	return goCommand(ctx, module, goEnv{workspace, runtime.GOARCH}, args, io.Discard, p)
}

// writeWorkspace writes a go.work file to path. The workspace contains three modules, whose
// directories are the other arguments. The argument module is the directory of the module of
// gauntlet-virtual. The argument tree is that of gauntlet's module, and the argument user is that
// of the module with the controllers under test.
//
// The go.work file gets the replace directives for Kubernetes' modules from the module of
// gauntlet-virtual. These directives have priority over those of the user's module.
func writeWorkspace(path, module, tree, user string) error {
	modFile := filepath.Join(module, "go.mod")
	content, err := os.ReadFile(modFile)
	if err != nil {
		return fmt.Errorf("found no source tree of gauntlet: %w; use a gauntlet that `make build` has built in a checkout", err)
	}
	mod, err := modfile.Parse(modFile, content, nil)
	if err != nil {
		return err
	}
	directories := []string{tree, module, user}
	slices.Sort(directories)
	work, err := modfile.ParseWork(path, []byte("go "+mod.Go.Version+"\n"), nil)
	if err != nil {
		return err
	}
	for _, dir := range slices.Compact(directories) {
		if err := work.AddUse(dir, ""); err != nil {
			return err
		}
	}
	for _, replace := range mod.Replace {
		if strings.HasPrefix(replace.New.Path, ".") {
			continue // gauntlet's own module, which the workspace contains
		}
		if err := work.AddReplace(replace.Old.Path, replace.Old.Version, replace.New.Path, replace.New.Version); err != nil {
			return err
		}
	}
	return os.WriteFile(path, modfile.Format(work.Syntax), 0o600)
}
