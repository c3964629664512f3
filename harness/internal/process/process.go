// Package process starts operating-system processes and ensures that none of them outlives gauntlet.
//
// Three mechanisms ensure this. Each one covers cases that the previous one does not:
//
//   - The code that started a process stops it. When a process exits, the package
//     kills the rest of its process group.
//   - The kernel kills a process when gauntlet dies (the parent-death signal).
//   - A guard process cleans up after gauntlet has exited for any reason. It kills
//     the process groups, including grandchildren, and removes the directories that
//     gauntlet registered with it. The guard is a second process of the gauntlet
//     binary in its own session.
//
// The guard does not find a descendant that leaves its process group, such as a
// daemon. The package works on Linux only.
package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec describes a process to start.
type Spec struct {
	// Name identifies the process in errors.
	Name string
	// Path is the path of the executable.
	Path string
	// Args are its arguments without the program name.
	Args []string
	// Env is the complete environment, as "NAME=value". The process inherits no
	// variables of gauntlet, because settings of the user's shell must not change a
	// run.
	Env []string
	// Dir is the working directory. If it is empty, the process uses gauntlet's working
	// directory.
	Dir string
	// LogPath is the file to append standard output and standard error to.
	LogPath string
}

// Process is a process that [Start] started, together with its process group.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  logFile
	done chan struct{}

	mu      sync.Mutex // held while signaling, so that no signal reaches a reused PID
	reaped  bool
	peakRSS int64      // largest resident set size in bytes when it was last read
	exit    *ExitError // set before done is closed
}

// ErrEnded is the error of sending a signal to a process that has already exited.
var ErrEnded = errors.New("the process has exited")

// Start starts a process in its own process group.
// Because of the process group, Ctrl-C at the terminal reaches only gauntlet.
// Canceling ctx after Start has returned has no effect. The process runs until it
// exits, until [Process.Stop] or [Process.Kill], or until gauntlet exits.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	guard, err := sharedGuard()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	log, err := openLog(spec.LogPath)
	if err != nil {
		return nil, fmt.Errorf("starting %s: opening its log file: %w", spec.Name, err)
	}
	defer log.file.Close() // the child has its own file descriptor

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append([]string{}, spec.Env...) // not nil, because nil would mean the environment of gauntlet
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = log.file, log.file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := forkFromOneThread(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	p := &Process{name: spec.Name, cmd: cmd, log: log, done: make(chan struct{})}
	err = guard.watchGroup(p.PID())
	go p.reap(guard)
	if err != nil {
		// A process that the guard does not watch must not run. SIGKILL cannot fail
		// for a child process of gauntlet.
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// PID returns the process ID, which is also the ID of the process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has exited and its group has been killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil until Done is closed, and then always an [*ExitError]. Even an exit
// with status 0 is an error if the caller did not request it. The reason is that the
// processes of a run must run until they are stopped.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.exit
	default:
		return nil
	}
}

// Usage returns the resource usage of the process. It is zero until Done is closed.
func (p *Process) Usage() Usage {
	select {
	case <-p.done:
		return p.exit.Usage
	default:
		return Usage{}
	}
}

// LogTail returns the last lines that the process has written to its log, for errors.
func (p *Process) LogTail() string { return p.log.tail() }

// Signal sends a signal to the process or to its process group.
// SIGKILL, SIGSTOP and SIGCONT go to the whole group, because the process cannot
// catch the first two and forward them. Any other signal goes only to the process,
// which may forward it to its children.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return fmt.Errorf("sending %s to %s: %w", unix.SignalName(sig), p.name, ErrEnded)
	}
	p.peakRSS = max(p.peakRSS, readPeakRSS(p.PID())) // the value cannot be read after the process has exited
	target := p.PID()
	switch sig {
	case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCONT:
		target = -target
	}
	if err := syscall.Kill(target, sig); err != nil {
		return fmt.Errorf("sending %s to %s (pid %d): %w", unix.SignalName(sig), p.name, p.PID(), err)
	}
	return nil
}

// killTimeout is the time within which a process must exit after SIGKILL.
// A process exceeds it only if the kernel blocks it, for example in a write to a
// failed disk.
const killTimeout = 10 * time.Second

// Stop sends SIGTERM and, after the grace period, SIGKILL to the process group. If ctx
// is canceled, Stop sends SIGKILL immediately. Stop returns when the process has
// exited, at the latest 10 seconds after the grace period. Stop does not return the
// exit status; [Process.Err] does. A process that is paused with SIGSTOP exits only at
// SIGKILL.
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

// Kill sends SIGKILL to the process group and returns when the process has exited.
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
		return fmt.Errorf("%s (pid %d) has not exited %s after SIGKILL", p.name, p.PID(), killTimeout)
	}
}

// reap waits until the process has exited, kills the rest of its group and releases its PID.
// The order matters: while the group leader is a zombie, the kernel cannot assign
// its PID to another process or process group.
func (p *Process) reap(guard *guardClient) {
	waitUntilZombie(p.PID())
	p.mu.Lock()
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // ESRCH means that the group has no other process
	guard.unwatchGroup(p.PID())
	// The error of Wait only repeats the exit status, which ProcessState contains.
	_ = p.cmd.Wait()
	p.reaped = true
	peak := p.peakRSS
	p.mu.Unlock()
	p.exit = newExitError(p.name, p.cmd.ProcessState, p.log)
	p.exit.Usage.RSSBytesMax = peak
	close(p.done)
}

// waitUntilZombie waits until the child process has exited, but does not reap it.
func waitUntilZombie(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// forkFromOneThread starts the command from a thread that runs as long as gauntlet
// runs. The kernel sends the parent-death signal when the forking thread exits. The Go
// runtime may end any other thread, and the signal would then kill a healthy process.
func forkFromOneThread(cmd *exec.Cmd) error {
	startForker.Do(func() {
		go func() {
			// The goroutine never unlocks its thread and never returns, so the thread
			// never exits.
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

// forkRequest asks the forking thread to start a command. The thread sends back the
// error of cmd.Start.
type forkRequest struct {
	cmd     *exec.Cmd
	started chan error
}

var (
	startForker  sync.Once
	forkRequests = make(chan forkRequest)
)
