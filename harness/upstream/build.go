package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// scratchPrefix names the directories that builds write to before what they
// made is renamed into place.
const scratchPrefix = ".build-"

// build compiles the targets in one go command, so that packages they share are
// compiled once and cores are kept busy, and renames the results into place.
func build(ctx context.Context, root string, targets []target, versions map[string]string, p *progress) error {
	if err := sweep(root); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(root, scratchPrefix)
	if err != nil {
		return fmt.Errorf("making a directory to build in: %w", err)
	}
	defer os.RemoveAll(scratch)

	flags, err := linkerFlags(versions)
	if err != nil {
		return err
	}
	packages := make([]string, 0, len(targets))
	for _, t := range targets {
		packages = append(packages, t.pkg)
	}
	p.stage("finding out what to compile")
	stale, err := stalePackages(ctx, packages, p)
	if err != nil {
		return err
	}
	p.total(stale)
	args := append([]string{"build", "-v", "-trimpath", "-ldflags", flags, "-o", scratch + string(filepath.Separator)}, packages...)
	if err := goCommand(ctx, args, io.Discard, p); err != nil {
		return err
	}
	p.done()
	for _, t := range targets {
		if err := install(filepath.Join(scratch, t.output()), t.path); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what a killed build left. It runs under the lock, so nobody
// writes there now.
func sweep(root string) error {
	leftovers, err := filepath.Glob(filepath.Join(root, scratchPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing what an interrupted build left: %w", err)
		}
	}
	return nil
}

// install moves a finished binary to its place in one step.
func install(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("installing %s: %w", filepath.Base(to), err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("installing %s: %w", filepath.Base(to), err)
	}
	return nil
}

// stalePackages lists the packages that the build will have to compile, which
// downloads the modules that are missing.
func stalePackages(ctx context.Context, packages []string, p *progress) ([]string, error) {
	var out strings.Builder
	args := append([]string{"list", "-deps", "-trimpath", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, packages...)
	if err := goCommand(ctx, args, &out, p); err != nil {
		return nil, err
	}
	return strings.Fields(out.String()), nil
}

// goCommand runs the go command in a process group of its own, so that an
// interrupt reaches it once, from here, and feeds its standard error to the
// progress line by line. A failure carries what was not progress.
func goCommand(ctx context.Context, args []string, stdout io.Writer, p *progress) error {
	// The signal that Pdeathsig asks for is bound to the thread that forks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
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
	complaints := p.follow(stderr)
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		p.done()
		return errors.New("interrupted; nothing half-built is kept, and what was compiled will not be compiled again")
	case err != nil:
		p.done()
		return fmt.Errorf("go %s failed: %w\n%s", args[0], err, strings.Join(complaints, "\n"))
	}
	return nil
}

// follow feeds lines to the progress until the reader ends and returns those
// that were not progress: the compiler's complaints.
func (p *progress) follow(r io.Reader) []string {
	const complaintsMax = 200
	stop := p.tick()
	defer stop()
	var complaints []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !p.line(lines.Text()) && len(complaints) < complaintsMax {
			complaints = append(complaints, lines.Text())
		}
	}
	return complaints
}

// lock waits until no other build works in root. The kernel drops the lock with
// the process, however that ends.
func lock(ctx context.Context, root string) (unlock func(), err error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(root, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
		}
		if !told {
			fmt.Fprintln(os.Stderr, "upstream: another build is running; waiting for it")
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, errors.New("interrupted while waiting for another build")
		case <-time.After(200 * time.Millisecond):
		}
	}
}
