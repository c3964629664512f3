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
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

const (
	// killTimeout bounds how long a killed process may take to be gone.
	killTimeout = 10 * time.Second
	// confirmEndTimeout bounds how long the node is asked whether a process has ended, when
	// what followed it was cut off. A node that died is noticed long before.
	confirmEndTimeout = 30 * time.Second
	// exitStatusTimeout bounds how long the kubelet is waited for to tell how a process
	// ended. It looks every second.
	exitStatusTimeout = 5 * time.Second
)

// PID is 0: the process is none of this machine.
func (i *instance) PID() int { return 0 }

// Usage is nil: it is not known.
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
		return fmt.Errorf("the pod %s is still there %s after SIGKILL", i.pod, killTimeout)
	}
}

// Stop asks the subject's process to end, as its kubelet would.
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

// Pause stops the subject's process on its node, Resume lets it go on.
func (i *instance) Pause(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "STOP", i.subject)
}

// Resume undoes Pause.
func (i *instance) Resume(ctx context.Context) error {
	return signal(ctx, i.launcher.Node, "CONT", i.subject)
}

// awaitEnd waits for the end of the subject's process, ends the rest of the pod, and
// says how it went.
func (i *instance) awaitEnd(ctx context.Context) {
	defer close(i.done)
	<-i.follow.Done()
	err := i.confirmEnded(ctx)
	i.tunnel.Close()
	i.lossChecks.Wait()
	if err == nil {
		err = i.exitError(ctx)
	}
	// Its ports are the next life's. The kubelet does not start it again: the
	// subject ended first.
	if killErr := signal(ctx, i.launcher.Node, "KILL", i.relay); killErr != nil {
		err = errors.Join(err, killErr)
	}
	// A pod that cannot be removed now has ended all the same.
	_ = i.launcher.remove(ctx, i.pod)
	i.err = err
}

// reportLoss sees to it that the loss of connections to the relay is reported, unless
// the subject has ended, after which its kubelet ends the relay too. It is called
// from the line, which is closed before asks is waited for.
func (i *instance) reportLoss(ctx context.Context, loss error) {
	if !i.checkingLoss.CompareAndSwap(false, true) {
		return // connections break together; one report will do
	}
	i.lossChecks.Go(func() {
		defer i.checkingLoss.Store(false)
		if gone(ctx, i.launcher.Node, i.subject) != nil {
			i.launcher.Lost(i.replica, loss)
		}
	})
}

// confirmEnded is nil when the subject's process has ended, and not just what followed
// it.
func (i *instance) confirmEnded(ctx context.Context) error {
	var exit *process.ExitError
	if errors.As(i.follow.Err(), &exit) && exit.Signal == 0 && exit.Code == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, confirmEndTimeout, fmt.Errorf("it was out of sight for %s", confirmEndTimeout))
	defer cancel()
	err := cluster.Poll(ctx, pollInterval, i.replica+" to end", func(ctx context.Context) error {
		return gone(ctx, i.launcher.Node, i.subject)
	})
	if err != nil {
		return fmt.Errorf("lost sight of %s: %w: %w", i.replica, i.follow.Err(), err)
	}
	return nil
}

// exitError is how the subject's process ended.
func (i *instance) exitError(ctx context.Context) error {
	ended := &process.ExitError{Name: i.replica, LogPath: i.logPath, LogTail: i.follow.LogTail()}
	i.mu.Lock()
	killed := i.killed
	i.mu.Unlock()
	if killed {
		ended.Signal, ended.Code = syscall.SIGKILL, -1
		return ended
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exitStatusTimeout, fmt.Errorf("not within %s", exitStatusTimeout))
	defer cancel()
	err := cluster.Poll(ctx, pollInterval, "how it ended", func(ctx context.Context) error {
		pod, err := i.launcher.Admin.CoreV1().Pods(Namespace).Get(ctx, i.pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		code, ok := exitCode(pod)
		if !ok {
			return errors.New("its kubelet has not noticed")
		}
		ended.Code = code
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s ended: %w; the end of %s:\n%s", i.replica, err, i.logPath, ended.LogTail)
	}
	// As a shell has it, 128 and the signal.
	if ended.Code > 128 {
		ended.Signal, ended.Code = syscall.Signal(ended.Code-128), -1
	}
	return ended
}

// exitCode is what the subject's process of a pod exited with, if it did.
func exitCode(pod *corev1.Pod) (int, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return int(c.State.Terminated.ExitCode), true
		}
	}
	return 0, false
}
