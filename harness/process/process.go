// Package process starts the operating-system processes of a run and sees that
// none of them outlives gauntlet, however gauntlet ends.
//
// Three things see to that, each covering what the one before cannot:
//
//   - every process is stopped by whoever started it, and whatever its process
//     group still holds when it ends is killed;
//   - the kernel kills a process when gauntlet dies (the parent-death signal);
//   - a guard, gauntlet run a second time in a session of its own, kills the
//     process groups, grandchildren included, and removes the directories it was
//     told of once gauntlet is gone.
//
// A descendant that leaves its process group (a daemon) is beyond the guard. The
// package knows nothing of what the processes are. It works on Linux only.
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

// Spec says what to start.
type Spec struct {
	// Name is what errors call the process.
	Name string
	// Path is the executable, Args its arguments without the program's name.
	Path string
	Args []string
	// Env is the whole environment, as "NAME=value": nothing is inherited, so
	// that a proxy or a debug setting of the user's shell cannot bend a run.
	Env []string
	// Dir is the working directory; empty is gauntlet's own.
	Dir string
	// LogPath is the file that standard output and error are appended to.
	LogPath string
}

// Process is a process that was started, and its process group.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  logFile
	done chan struct{}

	mu     sync.Mutex // held to signal, so that no recycled pid is ever hit
	reaped bool
	peak   int64      // resident set, in bytes, as last looked at
	exit   *ExitError // set before done is closed
}

// ErrEnded is what signalling a process gives that has ended already.
var ErrEnded = errors.New("the process has ended")

// Start starts a process in a process group of its own, so that Ctrl-C at the
// terminal reaches gauntlet alone. Cancelling ctx afterwards does nothing: the
// process ends by itself, by [Process.Stop], or with gauntlet.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	guard, err := theGuard()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	log, err := openLog(spec.LogPath)
	if err != nil {
		return nil, fmt.Errorf("starting %s: opening its log: %w", spec.Name, err)
	}
	defer log.file.Close() // the child has a descriptor of its own

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append([]string{}, spec.Env...) // never nil, which would mean gauntlet's own
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
		// Unguarded it must not run; SIGKILL does not fail on a child of ours.
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// PID is the process's ID, which is its process group's too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and what was left of its group has
// been killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil until Done is closed, then always an [*ExitError]: a process of a
// run is there to stay, so that its end, even with status 0, is an error to
// whoever did not ask for it.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.exit
	default:
		return nil
	}
}

// Usage is what the process used, known once Done is closed.
func (p *Process) Usage() Usage {
	select {
	case <-p.done:
		return p.exit.Usage
	default:
		return Usage{}
	}
}

// LogTail is the end of what the process has logged so far.
func (p *Process) LogTail() string { return p.log.tail() }

// Signal sends a signal. Those that a process cannot catch and so cannot pass
// on (SIGKILL, SIGSTOP), and SIGCONT, go to the whole group; any other goes to
// the process alone, which passes it on to its children if it wants to.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return fmt.Errorf("sending %s to %s: %w", unix.SignalName(sig), p.name, ErrEnded)
	}
	p.peak = max(p.peak, peakRSS(p.PID())) // it may be the last time that it can be read
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

// killDuration bounds how long a killed process may take to be gone. It is
// long only for one that the kernel holds, in a write to a dead disk say.
const killDuration = 10 * time.Second

// Stop asks the process to end (SIGTERM), and kills its group when it has not
// after grace, or at once when ctx ends first. It returns when the process is
// gone, which is no error however it went: ask Err how. It takes no longer than
// grace and 10 s. A process that is stopped (SIGSTOP) uses up its grace.
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

// Kill kills the process's group (SIGKILL) and returns when it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, ErrEnded) {
		return err
	}
	timer := time.NewTimer(killDuration)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s (pid %d) is still there %s after SIGKILL", p.name, p.PID(), killDuration)
	}
}

// reap waits for the end of the process, kills what is left of its group and
// frees its pid. The order matters: as long as the leader is a zombie, neither
// its pid nor its group's number can belong to anybody else.
func (p *Process) reap(guard *guardPipe) {
	waitForEnd(p.PID())
	p.mu.Lock()
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // ESRCH: nothing was left
	guard.forgetGroup(p.PID())
	// Wait's error only repeats the exit status, which ProcessState has.
	_ = p.cmd.Wait()
	p.reaped = true
	peak := p.peak
	p.mu.Unlock()
	p.exit = newExitError(p.name, p.cmd.ProcessState, p.log)
	p.exit.Usage.RSSBytesMax = peak
	close(p.done)
}

// waitForEnd returns when the child has ended, leaving it a zombie.
func waitForEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// forkFromOneThread starts the command from a thread that lives as long as
// gauntlet does. The parent-death signal comes when the *thread* that forked
// ends, and the Go runtime ends threads as it sees fit: started from just any
// goroutine, a healthy process could be killed at any moment.
func forkFromOneThread(cmd *exec.Cmd) error {
	startForker.Do(func() {
		go func() {
			// Never unlocked, and the loop never ends, so neither does the thread.
			runtime.LockOSThread()
			for request := range forks {
				request.started <- request.cmd.Start()
			}
		}()
	})
	request := fork{cmd, make(chan error, 1)}
	forks <- request
	return <-request.started
}

type fork struct {
	cmd     *exec.Cmd
	started chan error
}

var (
	startForker sync.Once
	forks       = make(chan fork)
)
