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
	// killTimeout limits the wait until a killed process has ended.
	killTimeout = 10 * time.Second
	// confirmEndTimeout limits the check on the node whether a process has ended. This
	// check runs if the log follower ends early. The limit does not delay the detection
	// of a failed node, because the run detects it earlier.
	confirmEndTimeout = 30 * time.Second
	// exitStatusTimeout limits the wait for the exit code in the pod's status. The
	// kubelet writes the code later than the exit, because it checks its containers
	// every second.
	exitStatusTimeout = 5 * time.Second
)

// PID returns 0, because the process runs on another machine.
func (i *instance) PID() int { return 0 }

// Usage returns nil, because the usage is unknown.
func (i *instance) Usage() *history.Usage { return nil }

func (i *instance) Done() <-chan struct{} { return i.done }

func (i *instance) Err() error {
	select {
	case <-i.done:
		return i.err
	default:
		return nil
	}
}

func (i *instance) LogTail() string { return i.follow.LogTail() }

// Kill kills the subject's process on its node.
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
		return fmt.Errorf("the process of Pod %s is still running %s after SIGKILL", i.pod, killTimeout)
	}
}

// Stop sends SIGTERM to the subject's process and, after grace, SIGKILL. A kubelet
// does the same.
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

// Pause suspends the subject's process on its node with SIGSTOP.
func (i *instance) Pause(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "STOP", i.subject)
}

// Resume resumes the subject's process with SIGCONT.
func (i *instance) Resume(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "CONT", i.subject)
}

// awaitEnd waits for the end of the subject's process, removes the pod, and sets the
// error that Err returns.
func (i *instance) awaitEnd(ctx context.Context) {
	defer close(i.done)
	<-i.follow.Done()
	err := i.confirmEnded(ctx)
	i.tunnel.Close()
	i.lossChecks.Wait()
	if err == nil {
		err = i.exitError(ctx)
	}
	// Kill the relay, because the next instance needs its ports. The kubelet does not
	// restart it, because the subject's container has ended.
	if killErr := signal(ctx, i.launcher.Node, "KILL", i.relay); killErr != nil {
		err = errors.Join(err, killErr)
	}
	// The instance has ended even if its pod cannot be removed.
	_ = i.launcher.remove(ctx, i.pod)
	i.err = err
}

// reportLoss reports a broken connection to the relay, unless the subject has ended. A
// break is expected after the end, because the kubelet then ends the relay too. The
// tunnel calls reportLoss. awaitEnd closes the tunnel before it waits for lossChecks.
func (i *instance) reportLoss(ctx context.Context, loss error) {
	if !i.checkingLoss.CompareAndSwap(false, true) {
		return // several connections break at the same time; report one
	}
	i.lossChecks.Go(func() {
		defer i.checkingLoss.Store(false)
		if gone(ctx, i.launcher.Node, i.subject) != nil {
			i.launcher.Lost(i.replica, loss)
		}
	})
}

// confirmEnded returns nil if the subject's process has ended. It is needed because
// the log follower may end although the process still runs.
func (i *instance) confirmEnded(ctx context.Context) error {
	var exit *process.ExitError
	if errors.As(i.follow.Err(), &exit) && exit.Signal == 0 && exit.Code == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, confirmEndTimeout, fmt.Errorf("timed out after %s", confirmEndTimeout))
	defer cancel()
	err := cluster.Poll(ctx, pollInterval, i.replica+" to end", func(ctx context.Context) error {
		return gone(ctx, i.launcher.Node, i.subject)
	})
	if err != nil {
		return fmt.Errorf("cannot determine whether %s has ended: %w: %w", i.replica, i.follow.Err(), err)
	}
	return nil
}

// exitError returns the error that describes how the subject's process ended.
func (i *instance) exitError(ctx context.Context) error {
	ended := &process.ExitError{Name: i.replica, LogPath: i.logPath, LogTail: i.follow.LogTail()}
	i.mu.Lock()
	killed := i.killed
	i.mu.Unlock()
	if killed {
		ended.Signal, ended.Code = syscall.SIGKILL, -1
		return ended
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exitStatusTimeout, fmt.Errorf("timed out after %s", exitStatusTimeout))
	defer cancel()
	err := cluster.Poll(ctx, pollInterval, "the exit code of "+i.replica, func(ctx context.Context) error {
		pod, err := i.launcher.Admin.CoreV1().Pods(Namespace).Get(ctx, i.pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		code, ok := exitCode(pod)
		if !ok {
			return errors.New("the status of the Pod has no terminated container")
		}
		ended.Code = code
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s ended: %w; the end of %s:\n%s", i.replica, err, i.logPath, ended.LogTail)
	}
	// Like a shell, the container runtime reports a signal as 128 plus its number.
	if ended.Code > 128 {
		ended.Signal, ended.Code = syscall.Signal(ended.Code-128), -1
	}
	return ended
}

// exitCode returns the exit code of the subject's container, if it has ended.
func exitCode(pod *corev1.Pod) (int, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return int(c.State.Terminated.ExitCode), true
		}
	}
	return 0, false
}
