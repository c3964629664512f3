package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// tempPrefix begins the names of temporary directories in the cache.
//
// The go command writes a program to such a directory. When the program is complete, it is renamed
// to its path in the cache.
const tempPrefix = ".build-"

// build compiles the given programs and moves them to their paths in the cache. The argument root
// is the cache directory. The argument versions has the versions that the programs report, by Go
// module path. build runs a single go command, which compiles shared packages only once and uses
// all cores.
func build(ctx context.Context, root string, targets []target, architecture string, versions map[string]string, p *progress) error {
	if err := removeInterruptedBuilds(root); err != nil {
		return err
	}
	tempDir, err := os.MkdirTemp(root, tempPrefix)
	if err != nil {
		return fmt.Errorf("creating a temporary directory for the build: %w", err)
	}
	defer os.RemoveAll(tempDir)

	flags, err := linkerFlags(versions)
	if err != nil {
		return err
	}
	packages := make([]string, 0, len(targets))
	for _, t := range targets {
		packages = append(packages, t.pkg)
	}
	module := filepath.Join(tempDir, "module")
	if err := errors.Join(os.Mkdir(module, 0o755), writeModule(module)); err != nil {
		return fmt.Errorf("writing the Go module that builds the programs: %w", err)
	}
	p.setStep("listing the packages to compile")
	env := goEnv{workspace: noWorkspace, architecture: architecture}
	stale, err := stalePackages(ctx, module, env, packages, p)
	if err != nil {
		return err
	}
	p.setPackages(stale)
	args := append([]string{"build", "-v", "-ldflags", flags, "-o", tempDir + string(filepath.Separator)}, packages...)
	if err := goCommand(ctx, module, env, args, io.Discard, p); err != nil {
		return err
	}
	p.clear()
	for _, t := range targets {
		if err := install(filepath.Join(tempDir, t.output()), t.path); err != nil {
			return err
		}
	}
	return nil
}

// removeInterruptedBuilds removes the temporary directories that killed builds have left. The
// caller must hold the lock of the cache, so that no running build uses these directories.
func removeInterruptedBuilds(root string) error {
	leftovers, err := fs.Glob(os.DirFS(root), tempPrefix+"*")
	if err != nil {
		return err
	}
	for _, dir := range leftovers {
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			return fmt.Errorf("removing the temporary directory of an interrupted build: %w", err)
		}
	}
	return nil
}

// install renames a complete program to its path in the cache. The rename is atomic, so no other
// process sees a partial program.
func install(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("moving the built program to %s: %w", to, err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("moving the built program to %s: %w", to, err)
	}
	return nil
}

// stalePackages returns the import paths of all packages that a build of the given packages must
// compile. The progress display then counts these packages. stalePackages also downloads missing Go
// modules. The argument module is the directory of the module that requires the packages. Flags of
// the go command may precede the packages.
func stalePackages(ctx context.Context, module string, env goEnv, packages []string, p *progress) ([]string, error) {
	var out strings.Builder
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, packages...)
	if err := goCommand(ctx, module, env, args, &out, p); err != nil {
		return nil, err
	}
	return strings.Fields(out.String()), nil
}

// goEnv has the environment variables of a go command that differ between builds.
type goEnv struct {
	workspace    string // the value of GOWORK: the path of a go.work file, or noWorkspace
	architecture string // the value of GOARCH
}

// noWorkspace is a value of the environment variable GOWORK. It makes the go command ignore go.work
// files.
const noWorkspace = "off"

// forThisMachine is the environment of a go command that builds for this machine, without a go.work
// file.
var forThisMachine = goEnv{workspace: noWorkspace, architecture: runtime.GOARCH}

// compilerGOGC makes the Go compiler collect garbage less often. It then needs up to 0.8 GB of memory, but a sixth less CPU time.
const compilerGOGC = "GOGC=800"

// CompilerFlags returns the flags with which gauntlet and its Makefile compile all packages, so that
// their builds share compiled packages. Without debugging information, the Go compiler needs an eighth
// less CPU time. The programs would not contain this information in any case.
func CompilerFlags() []string { return []string{"-trimpath", "-gcflags=all=-dwarf=false"} }

// goCommand runs the go command with [CompilerFlags] in the directory dir, and shows the build's progress. If the
// command fails, the error contains the command's standard error without the progress output.
//
// The go command runs in a process group of its own. After Ctrl-C, it therefore gets SIGINT only
// from this program, and not from the terminal too.
func goCommand(ctx context.Context, dir string, env goEnv, args []string, stdout io.Writer, p *progress) error {
	// The kernel sends the signal Pdeathsig when the thread that started the command exits. This
	// thread must therefore exist as long as the go command runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	tempDir, remove, err := guardedTempDir(os.Getenv("GOTMPDIR"), "gauntlet-go-")
	if err != nil {
		return fmt.Errorf("creating a temporary directory for go %s: %w", args[0], err)
	}
	defer remove() // an interrupted go command leaves files there

	cmd := exec.CommandContext(ctx, "go", slices.Insert(slices.Clone(args), 1, CompilerFlags()...)...)
	cmd.Dir = dir
	cmd.Env = append([]string{compilerGOGC}, os.Environ()...) // the user's GOGC comes later and has priority
	cmd.Env = append(cmd.Env, "GOTMPDIR="+tempDir, "CGO_ENABLED=0", "GOWORK="+env.workspace, "GOOS="+runtime.GOOS, "GOARCH="+env.architecture)
	cmd.Stdout = stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("starting go %s: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go %s: %w", args[0], err)
	}
	release, err := process.GuardGroup(cmd.Process.Pid) // no compiler may write to a removed directory
	if err != nil {
		_ = cmd.Cancel()
		return errors.Join(fmt.Errorf("starting go %s: %w", args[0], err), cmd.Wait())
	}
	otherLines := p.follow(stderr)
	release()
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		p.clear()
		return errors.New("the build was interrupted; run the command again to continue: compiled packages are not compiled again")
	case err != nil:
		p.clear()
		lines := slices.Compact(otherLines) // the go command may print a line once for each package
		if len(lines) == 1 {
			return fmt.Errorf("go %s failed: %s", args[0], lines[0])
		}
		return fmt.Errorf("go %s failed: %w\n%s", args[0], err, strings.Join(lines, "\n"))
	}
	return nil
}

// guardedTempDir creates a temporary directory, as [os.MkdirTemp] does. The caller removes it with the
// function remove. If this process is killed, its guard removes the directory.
func guardedTempDir(parent, pattern string) (path string, remove func(), err error) {
	path, err = os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	release, err := process.GuardDirectory(path)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(path))
	}
	return path, func() { _ = os.RemoveAll(path); release() }, nil
}

// follow reads the go command's standard error until EOF, and updates the progress. It returns the
// first 200 lines that are not progress output, such as compiler errors.
func (p *progress) follow(r io.Reader) []string {
	const otherLinesMax = 200
	stop := p.showPeriodically()
	defer stop()
	var otherLines []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !p.parseLine(lines.Text()) && len(otherLines) < otherLinesMax {
			otherLines = append(otherLines, lines.Text())
		}
	}
	return otherLines
}

// ErrCache means that the cache directory cannot be created or is not writable.
var ErrCache = errors.New("expected a directory in which files can be created; set XDG_CACHE_HOME to one")

// lock locks the cache directory, whose path is the argument root. If another process holds the
// lock, lock waits until that process releases it or ctx ends. The returned function unlock
// releases the lock. The kernel also releases it when this process exits, even after SIGKILL.
func lock(ctx context.Context, root string) (unlock func(), err error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache directory %s of the programs: %w; %w", root, inputfile.Reason(err), ErrCache)
	}
	file, err := os.OpenFile(filepath.Join(root, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file of the cache %s: %w; %w", root, inputfile.Reason(err), ErrCache)
	}
	for printed := false; ; printed = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
		}
		if !printed {
			fmt.Fprintln(os.Stderr, "setup: waiting for another build to finish")
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("interrupted while waiting for another build, which locks %s", file.Name())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
