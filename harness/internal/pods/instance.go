package pods

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

const (
	// killTimeout is the maximum time from SIGKILL until a process has ended.
	killTimeout = 10 * time.Second
	// confirmEndTimeout limits the time that confirmEnded waits for the end of the process of the
	// program under test.
	confirmEndTimeout = 30 * time.Second
	// exitStatusTimeout limits the time that exitError waits for the exit code in the pod
	// status. The kubelet checks its containers once per second, and writes the exit code after
	// that.
	exitStatusTimeout = 5 * time.Second
)

// PID returns the ID of the process of the program under test on this machine. It returns 0 if the
// program under test runs on another machine.
func (i *instance) PID() int { return i.pid }

// Usage returns nil: gauntlet does not know the CPU time and memory of a pod.
func (i *instance) Usage() *history.Usage { return nil }

// Done returns a channel that is closed after the process of the program under test has ended.
func (i *instance) Done() <-chan struct{} { return i.done }

// Err returns nil until the channel that Done returns is closed. After that, it returns an error
// that says how the process of the program under test has ended.
func (i *instance) Err() error {
	select {
	case <-i.done:
		return i.err
	default:
		return nil
	}
}

// LogTail returns the last lines of the local copy of the log of the program under test.
func (i *instance) LogTail() string { return i.follow.LogTail() }

// CommandLine returns the image of the program under test, its entrypoint if the pod sets one, and
// its arguments.
func (i *instance) CommandLine() []string { return i.commandLine }

// Kill sends SIGKILL to the process of the program under test, and waits at most 10 seconds for its
// end. It continues to wait if the caller cancels ctx.
func (i *instance) Kill(ctx context.Context) error {
	i.mu.Lock()
	i.killed = true
	i.mu.Unlock()
	if err := signal(ctx, i.launcher.Node, "KILL", i.subject); err != nil {
		return err
	}
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	select {
	case <-i.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("the process of the subject in pod %s/%s is still running %s after SIGKILL", Namespace, i.pod, killTimeout)
	}
}

// Stop sends SIGTERM to the process of the program under test and, after the grace period, SIGKILL.
// A kubelet stops a container in the same way. If the caller cancels ctx, Stop sends SIGKILL
// immediately.
func (i *instance) Stop(ctx context.Context, grace time.Duration) error {
	if err := signal(ctx, i.launcher.Node, "TERM", i.subject); err != nil && ctx.Err() == nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-i.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return i.Kill(context.WithoutCancel(ctx))
}

// Pause suspends the process of the program under test with SIGSTOP.
func (i *instance) Pause(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "STOP", i.subject)
}

// Resume continues the process of the program under test with SIGCONT.
func (i *instance) Resume(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "CONT", i.subject)
}

// awaitEnd waits until the process of the program under test has ended. It then kills the relay in
// the pod, and deletes the pod. It sets the error that Err returns, and closes the channel that
// Done returns.
func (i *instance) awaitEnd(ctx context.Context) {
	defer close(i.done)
	<-i.follow.Done()
	err := i.confirmEnded(ctx)
	i.tunnel.Close()
	i.lossChecks.Wait()
	if err == nil {
		err = i.exitError(ctx)
	}
	// Kill the relay, because the relay of the next instance needs the same ports. The kubelet does
	// not restart a sidecar container after the main container has ended.
	if killErr := signal(ctx, i.launcher.Node, "KILL", i.relay); killErr != nil {
		err = errors.Join(err, killErr)
	}
	// Ignore an error of remove: the instance has ended even if the pod still exists.
	_ = i.launcher.remove(ctx, i.pod)
	i.err = err
}

// reportLoss calls the callback RelayOptions.Lost, because a connection to the relay has broken.
// The relay is the sidecar that forwards the requests of the program under test, so gauntlet may
// have missed requests. The argument loss is the error of the connection.
//
// reportLoss does not call the callback if the program under test has ended. The kubelet then stops
// the relay, and this breaks the connection.
func (i *instance) reportLoss(ctx context.Context, loss error) {
	if !i.checkingLoss.CompareAndSwap(false, true) {
		return // another goroutine already reports a broken connection
	}
	i.lossChecks.Go(func() {
		defer i.checkingLoss.Store(false)
		if gone(ctx, i.launcher.Node, i.subject) != nil {
			i.launcher.Lost(i.replica, loss)
		}
	})
}

// confirmEnded returns nil when the process of the program under test has certainly ended.
//
// The process i.follow copies the log until the program under test ends. If i.follow exits with
// status 0, the program under test has ended. If i.follow fails or is killed, the program under
// test may still run. confirmEnded then polls the node until the program under test has ended, for
// at most confirmEndTimeout.
func (i *instance) confirmEnded(ctx context.Context) error {
	var exit *process.ExitError
	if errors.As(i.follow.Err(), &exit) && exit.Signal == 0 && exit.Code == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, confirmEndTimeout, fmt.Errorf("the process of replica %s did not end within %s", i.replica, confirmEndTimeout))
	defer cancel()
	err := cluster.Poll(ctx, pollInterval, i.replica+" to end", func(ctx context.Context) error {
		return gone(ctx, i.launcher.Node, i.subject)
	})
	if err != nil {
		return fmt.Errorf("cannot determine whether replica %s has ended: the process that copies the log of the replica failed: %w; %w", i.replica, i.follow.Err(), err)
	}
	return nil
}

// exitError returns an error that says how the process of the program under test has ended. It
// reads the exit code from the pod status. After a call of Kill, it reports SIGKILL without reading
// the pod status.
func (i *instance) exitError(ctx context.Context) error {
	ended := &process.ExitError{Name: i.replica, LogPath: i.logPath, LogTail: i.follow.LogTail()}
	i.mu.Lock()
	killed := i.killed
	i.mu.Unlock()
	if killed {
		ended.Signal, ended.Code = syscall.SIGKILL, -1
		return ended
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exitStatusTimeout, fmt.Errorf("the status of pod %s/%s had no exit code within %s", Namespace, i.pod, exitStatusTimeout))
	defer cancel()
	err := cluster.Poll(ctx, pollInterval, "the exit code of "+i.replica, func(ctx context.Context) error {
		pod, err := i.launcher.Admin.CoreV1().Pods(Namespace).Get(ctx, i.pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		code, ok := exitCode(pod)
		if !ok {
			return fmt.Errorf("the status of pod %s/%s has no terminated container", Namespace, i.pod)
		}
		ended.Code = code
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s ended with an unknown exit code: %w; last lines of %s:\n%s", i.replica, err, i.logPath, ended.LogTail)
	}
	// For a process that a signal has terminated, the container runtime reports the exit code 128
	// plus the number of the signal, as a shell does.
	if ended.Code > 128 {
		ended.Signal, ended.Code = syscall.Signal(ended.Code-128), -1
	}
	return ended
}

// exitCode returns the exit code of the container of the program under test. It returns false if
// the container has not exited.
func exitCode(pod *corev1.Pod) (int, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return int(c.State.Terminated.ExitCode), true
		}
	}
	return 0, false
}
