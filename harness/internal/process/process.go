// Package process starts operating-system processes and ensures that none of them outlives
// gauntlet.
//
// Three mechanisms end a process. Each mechanism covers cases that the mechanism before does not:
//
//   - The caller stops the process. When a process exits, the package kills the
//     rest of its process group.
//   - The kernel kills the process when gauntlet dies (the parent-death signal).
//   - A guard process cleans up after gauntlet has exited for any reason. It kills
//     the process groups, including grandchildren, and removes the directories that
//     gauntlet registered with it. The guard is a second process of the gauntlet
//     binary in its own session.
//
// The guard does not kill a descendant that has left the process group, such as a daemon. The
// package works on Linux only.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kube-gauntlet/gauntlet/harness/internal/logfile"
)

// Spec says which program [Start] starts, with which arguments and environment.
type Spec struct {
	// Name identifies the process in error messages.
	Name string
	// Path is the path of the executable.
	Path string
	// Args lists the command line arguments, without the program name.
	Args []string
	// Env is the complete environment of the process, in the form "NAME=value". The process
	// inherits no variables of gauntlet, because the user's environment must not change a run.
	Env []string
	// Dir is the working directory of the process. Empty means the working directory of gauntlet.
	Dir string
	// Mounts are files and directories that the process sees at other paths. They need a machine on
	// which [MountsSupported] returns nil.
	Mounts []Mount
	// Root is the path of an empty directory. With Mounts, it becomes the root directory of the
	// process. The process then sees the files of this machine and the mounts there.
	Root string
	// LogPath is the path of the log file. Start creates the file and its directory, and appends
	// the standard output and standard error of the process. Package logfile limits the size of
	// the file.
	LogPath string
}

// Process is a process that [Start] has started, together with its process group. When the
// process exits, the rest of the group is killed.
type Process struct {
	spec Spec
	cmd  *exec.Cmd     // the started process
	log  *logfile.File // log file with the standard output and standard error
	done chan struct{} // closed by reap after the process has exited

	mu      sync.Mutex // held while Signal sends a signal, so that reap does not release the PID
	reaped  bool       // true after reap has released the PID, which the kernel may then reuse
	peakRSS int64      // largest resident set size in bytes, read at each signal
	exit    *ExitError // how the process has exited; set before done is closed
}

// ErrEnded is the error that [Process.Signal] wraps if the process has already exited.
var ErrEnded = errors.New("the process has exited")

// Start starts a process in its own process group. Ctrl-C at the terminal therefore interrupts
// only gauntlet.
//
// The process runs until it exits, until a call of [Process.Stop] or [Process.Kill], or until
// gauntlet exits. If the caller cancels ctx after Start has returned, the process continues.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	guard, err := sharedGuard()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	output, err := startOutput(spec.LogPath)
	if err != nil {
		return nil, fmt.Errorf("starting %s: opening its log file: %w", spec.Name, err)
	}
	cmd, err := spec.command()
	if err == nil {
		cmd.Stdout, cmd.Stderr = output.write, output.write
		err = forkFromOneThread(cmd)
	}
	output.write.Close() // the child process has its own file descriptor
	if err != nil {
		output.finish()
		return nil, fmt.Errorf("starting %s: %w", spec.Name, spec.startReason(err))
	}
	p := &Process{spec: spec, cmd: cmd, log: output.log, done: make(chan struct{})}
	err = guard.watchGroup(p.PID())
	go p.reap(guard, output)
	if err != nil {
		// Kill the process, because the guard would not kill it if gauntlet died. SIGKILL cannot
		// fail for a child process of gauntlet.
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// startReason returns an error that names the cause of a failed start. The error of the kernel always
// names the executable, although the cause may be another.
func (s Spec) startReason(err error) error {
	switch _, dirErr := os.Stat(cmp.Or(s.Dir, ".")); {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(dirErr, fs.ErrNotExist):
		return fmt.Errorf("its working directory was removed: %w", dirErr)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("gauntlet has %w; raise the limit with `ulimit -n`", unix.EMFILE)
	}
	return err
}

// command returns the command that runs the program.
func (s Spec) command() (*exec.Cmd, error) {
	if len(s.Mounts) == 0 {
		return s.commandOf(s.Path), nil
	}
	namespace, err := supportedNamespace()
	if err != nil {
		return nil, err
	}
	return s.mountCommand(namespace)
}

// commandOf returns the command that runs the executable at path, in a process group of its own.
func (s Spec) commandOf(path string) *exec.Cmd {
	cmd := exec.Command(path, s.Args...)
	cmd.Env = append([]string{}, s.Env...) // not nil: exec.Cmd would pass gauntlet's environment for nil
	cmd.Dir = s.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// PID returns the process ID, which is also the ID of the process group. The kernel may reuse
// this ID after the process has exited.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CommandLine returns the path of the executable, followed by the arguments of the process.
func (p *Process) CommandLine() []string { return append([]string{p.spec.Path}, p.spec.Args...) }

// Done returns a channel that is closed after the process has exited. Before that, the package
// has also killed the rest of the process group.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil while the process is running. After the channel of [Process.Done] is closed,
// it returns an [*ExitError].
//
// Err returns an error even for exit status 0, because a component must not exit before gauntlet
// stops it.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.exit
	default:
		return nil
	}
}

// Usage returns the CPU time and the memory that the process has used. It returns the zero value
// until the channel of [Process.Done] is closed.
func (p *Process) Usage() Usage {
	select {
	case <-p.done:
		return p.exit.Usage
	default:
		return Usage{}
	}
}

// LogTail returns the last lines of the process's output, at most 15, for use in error messages.
func (p *Process) LogTail() string { return lastLines(p.log.Recent()) }

// Signal sends a signal to the process or to its process group. The error wraps [ErrEnded] if
// the process has exited.
//
// SIGKILL, SIGSTOP and SIGCONT go to the whole group. A process cannot catch SIGKILL and
// SIGSTOP, so it could not forward them to its children; SIGCONT undoes SIGSTOP. All other
// signals go only to the process.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return fmt.Errorf("sending %s to %s: %w", unix.SignalName(sig), p.spec.Name, ErrEnded)
	}
	p.peakRSS = max(p.peakRSS, readPeakRSS(p.PID())) // read it now: after the exit, /proc does not have it
	target := p.PID()
	switch sig {
	case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCONT:
		target = -target
	}
	if err := syscall.Kill(target, sig); err != nil {
		return fmt.Errorf("sending %s to %s (pid %d): %w", unix.SignalName(sig), p.spec.Name, p.PID(), err)
	}
	return nil
}

// killTimeout is the time in which a process must exit after SIGKILL. Only a process that the
// kernel blocks needs longer, for example in a write to a failed disk.
const killTimeout = 10 * time.Second

// Stop sends SIGTERM to the process and, after the grace period, SIGKILL to its process group.
// It returns when the process has exited. If the caller cancels ctx, Stop sends SIGKILL
// immediately.
//
// Stop returns an error if the process still exists 10 seconds after SIGKILL. Otherwise it
// returns nil, for every exit status; [Process.Err] has the status. A process that SIGSTOP has
// paused exits only after SIGKILL.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, ErrEnded) {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.Kill()
}

// Kill sends SIGKILL to the process group and waits until the process has exited. It returns an
// error if the process still exists after 10 seconds.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, ErrEnded) {
		return err
	}
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s (pid %d) has not exited %s after SIGKILL", p.spec.Name, p.PID(), killTimeout)
	}
}

// reap waits until the process has exited, kills the rest of its process group, and then
// releases the PID. It closes the channel of [Process.Done].
//
// reap kills the group while the process is a zombie. A zombie still occupies its PID, so no
// other process group can have this ID.
func (p *Process) reap(guard *guardClient, output *output) {
	waitUntilZombie(p.PID())
	p.mu.Lock()
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // ESRCH means that the group has no other process
	guard.unwatchGroup(p.PID())
	// Ignore the error: ProcessState also contains the exit status.
	_ = p.cmd.Wait()
	p.reaped = true
	peak := p.peakRSS
	p.mu.Unlock()
	output.finish()
	p.exit = newExitError(&p.spec, p.cmd.ProcessState, p.log)
	p.exit.Usage.RSSBytesMax = peak
	close(p.done)
}

// waitUntilZombie waits until a child process has exited, but leaves it a zombie (does not reap
// it).
func waitUntilZombie(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// forkFromOneThread starts a command from a thread that exists as long as gauntlet runs.
//
// The kernel sends the parent-death signal when the thread that started the process exits, even
// if gauntlet continues. The Go runtime may end any other thread, and the kernel would then kill
// the process.
func forkFromOneThread(cmd *exec.Cmd) error {
	startForker.Do(func() {
		go func() {
			// This goroutine never unlocks its thread and never returns, so the thread never exits.
			runtime.LockOSThread()
			for request := range forkRequests {
				request.started <- request.cmd.Start()
			}
		}()
	})
	request := forkRequest{cmd, make(chan error, 1)}
	forkRequests <- request
	return <-request.started
}

// forkRequest asks the thread of forkFromOneThread, which starts all processes, to start a
// command.
type forkRequest struct {
	cmd     *exec.Cmd
	started chan error // receives the error of cmd.Start
}

var (
	startForker  sync.Once                // starts the goroutine that occupies the forking thread
	forkRequests = make(chan forkRequest) // requests to start a process, for that goroutine
)
