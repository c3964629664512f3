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

// tempPrefix is the name prefix of the temporary directories that builds write to.
// A finished binary is renamed from there to its final path.
const tempPrefix = ".build-"

// build compiles the targets and moves the binaries to their paths in the cache.
// It runs one go command for all targets, so that shared packages are compiled
// once and all cores are used.
func build(ctx context.Context, root string, targets []target, versions map[string]string, p *progress) error {
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
	p.setStep("listing the packages to compile")
	stale, err := stalePackages(ctx, packages, p)
	if err != nil {
		return err
	}
	p.setPackages(stale)
	args := append([]string{"build", "-v", "-trimpath", "-ldflags", flags, "-o", tempDir + string(filepath.Separator)}, packages...)
	if err := goCommand(ctx, args, io.Discard, p); err != nil {
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

// removeInterruptedBuilds removes the temporary directories of builds that were killed.
// The caller holds the lock of the cache, so no running build uses these directories.
func removeInterruptedBuilds(root string) error {
	leftovers, err := filepath.Glob(filepath.Join(root, tempPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing the directory of an interrupted build: %w", err)
		}
	}
	return nil
}

// install renames a finished binary to its path in the cache. The rename is atomic.
func install(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("installing %s: %w", filepath.Base(to), err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("installing %s: %w", filepath.Base(to), err)
	}
	return nil
}

// stalePackages lists the packages that the build has to compile.
// Listing them also downloads the Go modules that are missing.
func stalePackages(ctx context.Context, packages []string, p *progress) ([]string, error) {
	var out strings.Builder
	args := append([]string{"list", "-deps", "-trimpath", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, packages...)
	if err := goCommand(ctx, args, &out, p); err != nil {
		return nil, err
	}
	return strings.Fields(out.String()), nil
}

// goCommand runs the go command and shows its progress while it runs.
// The error contains the lines of standard error that are not progress output.
// The go command runs in its own process group, so that it gets an interrupt once:
// from here and not also from the terminal.
func goCommand(ctx context.Context, args []string, stdout io.Writer, p *progress) error {
	// The kernel sends the Pdeathsig signal when the thread that forked exits.
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
	otherLines := p.follow(stderr)
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		p.clear()
		return errors.New("interrupted; run it again to continue: packages that were compiled are not compiled again")
	case err != nil:
		p.clear()
		return fmt.Errorf("go %s failed: %w\n%s", args[0], err, strings.Join(otherLines, "\n"))
	}
	return nil
}

// follow reads the standard error of the go command until it ends and updates the progress.
// It returns the lines that are not progress output, such as compiler errors.
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

// lock takes the lock of the cache directory root and waits while another build holds it.
// The kernel releases the lock when the process exits, even after SIGKILL.
func lock(ctx context.Context, root string) (unlock func(), err error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(root, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file of the cache: %w", err)
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
			fmt.Fprintln(os.Stderr, "upstream: waiting for another build to finish")
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, errors.New("interrupted while waiting for another build")
		case <-time.After(200 * time.Millisecond):
		}
	}
}
