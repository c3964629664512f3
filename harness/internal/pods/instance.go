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
	// killTimeout is the time in which a process must end after SIGKILL.
	killTimeout = 10 * time.Second
	// confirmEndTimeout limits the time in which confirmEnded waits until the process of the
	// subject has ended.
	confirmEndTimeout = 30 * time.Second
	// exitStatusTimeout limits the time in which exitError waits for the exit code in the pod
	// status. The kubelet checks its containers only once per second, and writes the exit code
	// after that.
	exitStatusTimeout = 5 * time.Second
)

// PID returns the ID of the subject's process on this machine. It returns 0 if the container engine
// runs on another machine.
func (i *instance) PID() int { return i.pid }

// Usage returns nil, because the resource usage of a pod is unknown.
func (i *instance) Usage() *history.Usage { return nil }

// Done returns a channel that is closed when the process of the subject has ended.
func (i *instance) Done() <-chan struct{} { return i.done }

// Err returns nil until the channel of Done is closed. After that, it returns an error that says
// how the process has ended.
func (i *instance) Err() error {
	select {
	case <-i.done:
		return i.err
	default:
		return nil
	}
}

// LogTail returns the last lines of the local copy of the subject's log.
func (i *instance) LogTail() string { return i.follow.LogTail() }

// CommandLine returns the image of the subject, its entrypoint if the pod sets one, and its
// arguments.
func (i *instance) CommandLine() []string { return i.commandLine }

// Kill sends SIGKILL to the process of the subject, and waits at most 10 seconds until the process
// has ended. Canceling ctx does not end this wait.
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

// Stop sends SIGTERM to the process of the subject and, after the grace period, SIGKILL, as a
// kubelet does. If ctx is canceled, it sends SIGKILL immediately.
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

// Pause suspends the process of the subject with SIGSTOP.
func (i *instance) Pause(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "STOP", i.subject)
}

// Resume resumes the process of the subject with SIGCONT.
func (i *instance) Resume(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "CONT", i.subject)
}

// awaitEnd waits until the process of the subject has ended, and then deletes the pod. It sets the
// error that Err returns, and closes the channel of Done.
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
	// An error of remove is ignored, because the instance has ended even if the pod remains.
	_ = i.launcher.remove(ctx, i.pod)
	i.err = err
}

// reportLoss calls Lost if a connection to the relay has broken while the subject is running.
// The tunnel calls it until awaitEnd has closed the tunnel.
//
// If the subject has ended, reportLoss does nothing: the kubelet stops the relay after the
// subject, so its connections are expected to break.
func (i *instance) reportLoss(ctx context.Context, loss error) {
	if !i.checkingLoss.CompareAndSwap(false, true) {
		return // another connection has broken at the same time, and is reported
	}
	i.lossChecks.Go(func() {
		defer i.checkingLoss.Store(false)
		if gone(ctx, i.launcher.Node, i.subject) != nil {
			i.launcher.Lost(i.replica, loss)
		}
	})
}

// confirmEnded returns nil when the process of the subject has ended.
//
// The process i.follow copies the log until the subject ends. If it has exited successfully,
// the subject has ended. If it has failed or was killed, the subject may still run, and
// confirmEnded asks the node until the subject has ended.
func (i *instance) confirmEnded(ctx context.Context) error {
	var exit *process.ExitError
	if errors.As(i.follow.Err(), &exit) && exit.Signal == 0 && exit.Code == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, confirmEndTimeout, fmt.Errorf("%s did not end within %s", i.replica, confirmEndTimeout))
	defer cancel()
	err := cluster.Poll(ctx, pollInterval, i.replica+" to end", func(ctx context.Context) error {
		return gone(ctx, i.launcher.Node, i.subject)
	})
	if err != nil {
		return fmt.Errorf("cannot determine whether %s has ended: the process that copies its log failed: %w; %w", i.replica, i.follow.Err(), err)
	}
	return nil
}

// exitError returns an error that says how the process of the subject has ended. It reads the
// exit code from the pod status, except if Kill ended the process.
func (i *instance) exitError(ctx context.Context) error {
	ended := &process.ExitError{Name: i.replica, LogPath: i.logPath, LogTail: i.follow.LogTail()}
	i.mu.Lock()
	killed := i.killed
	i.mu.Unlock()
	if killed {
		ended.Signal, ended.Code = syscall.SIGKILL, -1
		return ended
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exitStatusTimeout, fmt.Errorf("the pod status had no exit code within %s", exitStatusTimeout))
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
		return fmt.Errorf("%s ended: %w; last lines of %s:\n%s", i.replica, err, i.logPath, ended.LogTail)
	}
	// If a signal has terminated a process, the container runtime reports the exit code 128 plus
	// the number of the signal, as a shell does.
	if ended.Code > 128 {
		ended.Signal, ended.Code = syscall.Signal(ended.Code-128), -1
	}
	return ended
}

// exitCode returns the exit code of the container of the subject, and reports whether the container
// has ended.
func exitCode(pod *corev1.Pod) (int, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return int(c.State.Terminated.ExitCode), true
		}
	}
	return 0, false
}
