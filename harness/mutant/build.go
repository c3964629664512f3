package mutant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/runtimepatch"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
)

// Builder builds the executables of mutants. It never changes the source tree: edited files are in
// a directory of their own.
type Builder struct {
	// Tree is the root directory of gauntlet's source tree.
	Tree string
	// Command is the directory of the main package for mutants of this project's source, relative
	// to Tree. It is ignored for mutants of upstream. By default, it is the directory of our
	// controllers.
	Command string
	// Virtual makes Build link the mutant into the program gauntlet-virtual, which simulates a
	// run in virtual time. Without Virtual, Build builds the mutant's own executable.
	Virtual bool
	// Dir is the directory for the executables. During a build, it also contains the edited files.
	// Build creates the directory.
	Dir string
}

// ourCommand is the directory of our controllers' main package, relative to the source tree.
const ourCommand = "controllers/cmd/workload-controller-manager"

// Preflight returns an error if it is certain that the mutants cannot be built. For example, the
// go command is missing, or the source tree does not contain the text that an edit replaces.
//
// Preflight builds nothing, and does not check the edits of upstream's source.
func (w *Builder) Preflight(mutants []Mutant) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("found no go command in PATH; expected Go, which builds the mutants; install Go, or add its directory to PATH")
	}
	const module = "module github.com/kube-gauntlet/gauntlet"
	mod, err := os.ReadFile(filepath.Join(w.Tree, "go.mod"))
	if err == nil && !slices.Contains(strings.Split(string(mod), "\n"), module) {
		err = fmt.Errorf("%s: found no line %q", filepath.Join(w.Tree, "go.mod"), module)
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(w.Tree, ourCommand))
	}
	if err != nil {
		return fmt.Errorf("%s is not the source tree of gauntlet; run gauntlet in the source tree, or name the tree with --tree: %w", w.Tree, inputfile.FileError(err))
	}
	for i := range mutants {
		if m := &mutants[i]; m.Base != Upstream {
			if _, err := m.Apply(w.read); err != nil {
				return fmt.Errorf("%s is not the source tree of this version of gauntlet: %w", w.Tree, err)
			}
		}
	}
	return nil
}

// read returns the content of a file of the source tree. The path is relative to w.Tree and
// separated by slashes.
func (w *Builder) read(file string) ([]byte, error) {
	return os.ReadFile(filepath.Join(w.Tree, filepath.FromSlash(file)))
}

// These constants locate the source of the program gauntlet-virtual. They are its module,
// relative to the source tree, and its main package, relative to the module.
const (
	virtualModule  = "harness/virtual"
	virtualCommand = "cmd/" + virtual.Program
)

// Executable returns the path that Build gives the executable of a mutant.
func (w *Builder) Executable(m *Mutant) string {
	if w.Virtual {
		return filepath.Join(w.Dir, m.ID, virtual.Program)
	}
	return filepath.Join(w.Dir, m.ID)
}

// Build compiles a mutant and returns the absolute path of its executable.
func (w *Builder) Build(ctx context.Context, m *Mutant) (string, error) {
	executable, err := filepath.Abs(w.Executable(m))
	if err != nil {
		return "", err
	}
	source := w.Tree
	if m.Base == Upstream {
		if source, err = setup.KubernetesSource(ctx); err != nil {
			return "", err
		}
	}
	edited, err := m.Apply(func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(source, filepath.FromSlash(file))) })
	if err != nil {
		return "", err
	}
	dir := executable + ".edited"
	if err := write(dir, edited); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	switch {
	case w.Virtual:
		err = w.buildVirtual(ctx, m, dir, source, edited, executable)
	case m.Base == Upstream:
		err = setup.Edited(ctx, dir, executable)
	default:
		err = w.build(ctx, ".", overlay{dir, w.Tree, edited}, executable, "./"+cmp.Or(w.Command, ourCommand))
	}
	if err != nil {
		return "", fmt.Errorf("building mutant %s: %w", m.ID, err)
	}
	return executable, nil
}

// buildVirtual builds the program gauntlet-virtual with a mutant linked in. The edited files are
// in dir. The argument source is the directory with the unedited files.
func (w *Builder) buildVirtual(ctx context.Context, m *Mutant, dir, source string, edited map[string]string, executable string) error {
	o, args := overlay{dir, source, edited}, []string{"-tags=" + virtual.OnlyOurs, "./" + virtualCommand}
	if m.Base == Upstream {
		link, modFile, err := w.linkKubernetes(ctx, dir, source)
		if err != nil {
			return err
		}
		o.tree, args = link, []string{"-modfile=" + modFile, "./" + virtualCommand}
	}
	return w.build(ctx, virtualModule, o, executable, args...)
}

// linkKubernetes makes a symbolic link to the source of k8s.io/kubernetes in dir. It also copies
// the go.mod file of gauntlet-virtual, and adds a replace directive for this link. This is
// necessary because the go command rejects overlays for files in the module cache. linkKubernetes
// returns the paths of the link and of the new go.mod file.
func (w *Builder) linkKubernetes(ctx context.Context, dir, source string) (link, modFile string, err error) {
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := w.read(virtualModule + "/" + name)
		if err != nil {
			return "", "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return "", "", err
		}
	}
	link, err = setup.LinkKubernetes(ctx, dir, source)
	return link, filepath.Join(dir, "go.mod"), err
}

// overlay describes edited files for the go command.
type overlay struct {
	dir    string            // the directory with the edited files
	tree   string            // the directory with the original files, which the edited files replace
	edited map[string]string // the keys are the files' paths relative to dir and to tree, with slashes
}

// build builds a main package of this project. The argument module is the directory of the
// package's Go module, relative to the source tree. The overlay o makes the go command read the
// edited files.
func (w *Builder) build(ctx context.Context, module string, o overlay, executable string, args ...string) error {
	tree, err := filepath.Abs(o.tree)
	if err != nil {
		return err
	}
	replaced := map[string]string{}
	for file := range o.edited {
		file = filepath.FromSlash(file)
		replaced[filepath.Join(tree, file)] = filepath.Join(o.dir, file)
	}
	if module == virtualModule {
		// The patches fit only one version of Go. Without them, the mutant still runs, but two runs
		// with the same seed may differ.
		patched, _ := runtimepatch.Write(ctx, filepath.Join(o.dir, "runtime"))
		maps.Copy(replaced, patched)
	}
	content, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	path := filepath.Join(o.dir, "overlay.json")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	args = slices.Concat([]string{"build"}, setup.CompilerFlags(), []string{"-ldflags=-s -w", "-overlay=" + path, "-o", executable}, args)
	return goCommand(ctx, filepath.Join(w.Tree, module), args...)
}

// write replaces the content of the directory dir by the given files. The keys of the map files are
// slash-separated paths relative to dir. The values are the contents of the files.
func write(dir string, files map[string]string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for file, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in a directory. If ctx is canceled, the go command and its
// compilers end. If this process dies, the go command ends too.
func goCommand(ctx context.Context, dir string, args ...string) error {
	// Linux sends the Pdeathsig signal when the thread that started the command ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(complaints.String()))
	}
	return nil
}
