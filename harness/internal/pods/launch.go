package pods

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults/relay"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// pollInterval is the time between two reads of a pod that is starting.
const pollInterval = 100 * time.Millisecond

// relayLauncher launches replicas that connect through relays.
type relayLauncher struct {
	Options
	RelayOptions
	logDir string

	prepareOnce sync.Once
	prepareErr  error

	mu      sync.Mutex
	tunnels map[string]*replicaTunnel
}

// Launcher returns a launcher of replicas that reach the API server only through the
// fault proxy. Their logs are copied to logDir.
func Launcher(o Options, r RelayOptions, logDir string) subject.Launcher {
	l := &relayLauncher{Options: o, RelayOptions: r, logDir: logDir, tunnels: map[string]*replicaTunnel{}}
	return l.launch
}

// launch starts an instance: a new pod behind the replica's tunnel.
func (r *relayLauncher) launch(ctx context.Context, replica string) (subject.Instance, error) {
	t, err := r.tunnelOf(ctx, replica)
	if err != nil {
		return nil, err
	}
	t.instances++ // a replica starts one instance at a time
	pod := r.manifest(fmt.Sprintf("%s-%d", replica, t.instances), replica, corev1.RestartPolicyNever)
	addRelay(pod, r.RelayOptions.Image, t)
	pod, err = r.Admin.CoreV1().Pods(Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating the Pod of %s: %w", replica, err)
	}
	i, err := r.startInstance(ctx, pod, t)
	if err != nil {
		return nil, errors.Join(err, r.remove(ctx, pod.Name))
	}
	return i, nil
}

// tunnelOf returns the tunnel of a replica. It creates the tunnel at the first start.
func (r *relayLauncher) tunnelOf(ctx context.Context, replica string) (*replicaTunnel, error) {
	r.prepareOnce.Do(func() { r.prepareErr = r.prepare(ctx) })
	if r.prepareErr != nil {
		return nil, r.prepareErr
	}
	r.mu.Lock()
	t := r.tunnels[replica]
	r.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := r.newTunnel(ctx, replica)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.tunnels[replica] = t
	r.mu.Unlock()
	return t, nil
}

// startInstance waits until the subject's container runs, and connects its relay to the
// fault proxy.
func (r *relayLauncher) startInstance(ctx context.Context, pod *corev1.Pod, t *replicaTunnel) (*instance, error) {
	pod, err := r.awaitStart(ctx, pod.Name)
	if err != nil {
		return nil, err
	}
	i := &instance{
		launcher: r, replica: t.replica, pod: pod.Name,
		logPath: filepath.Join(r.logDir, t.replica+".log"),
		subject: containerID(pod.Status.ContainerStatuses), relay: containerID(pod.Status.InitContainerStatuses),
		done: make(chan struct{}),
	}
	logFile := fmt.Sprintf("/var/log/pods/%s_%s_%s/%s/0.log", Namespace, pod.Name, pod.UID, subjectContainer)
	i.follow, err = r.Node.Follow(ctx, t.replica, i.logPath, shell(followScript, i.subject, logFile)...)
	if err != nil {
		return nil, fmt.Errorf("following the log of %s: %w", t.replica, err)
	}
	checkCtx := context.WithoutCancel(ctx)
	if i.tunnel, err = r.connect(ctx, t, func(err error) { i.reportLoss(checkCtx, err) }); err != nil {
		if stopErr := i.follow.Kill(); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
		return nil, fmt.Errorf("%w; the end of its log:\n%s", err, i.follow.LogTail())
	}
	go i.awaitEnd(checkCtx)
	return i, nil
}

// awaitStart waits until the subject's container has started. It may have ended
// already.
func (o *Options) awaitStart(ctx context.Context, name string) (pod *corev1.Pod, err error) {
	var failure error
	err = cluster.Poll(ctx, pollInterval, "Pod "+name+" to start", func(ctx context.Context) error {
		pod, err = o.Admin.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if started(pod) {
			return nil
		}
		if failure = cannotStart(pod); failure != nil {
			return nil
		}
		return fmt.Errorf("its phase is %s: %s", pod.Status.Phase, waitingFor(pod))
	})
	return pod, errors.Join(failure, err)
}

func started(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil || c.State.Terminated != nil {
			return true
		}
	}
	return false
}

// cannotStart returns the reason why a pod will never start, or nil if it may still
// start.
func cannotStart(pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodFailed {
		return fmt.Errorf("pod %s failed: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message)
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if waiting := c.State.Waiting; waiting != nil && waiting.Reason == "ErrImageNeverPull" {
			return fmt.Errorf("the image %s is neither on node %s nor in the local container engine", c.Image, pod.Spec.NodeName)
		}
	}
	return nil
}

// waitingFor describes why the containers of a pod are not running, for errors.
func waitingFor(pod *corev1.Pod) string {
	var all []string
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		switch {
		case c.State.Waiting != nil:
			all = append(all, fmt.Sprintf("%s: %s %s", c.Name, c.State.Waiting.Reason, c.State.Waiting.Message))
		case c.LastTerminationState.Terminated != nil:
			ended := c.LastTerminationState.Terminated
			all = append(all, fmt.Sprintf("%s: ended with status %d %s", c.Name, ended.ExitCode, ended.Message))
		}
	}
	return strings.Join(all, "; ")
}

// containerID returns containerd's ID of the only container in statuses.
func containerID(statuses []corev1.ContainerStatus) string {
	if len(statuses) == 0 {
		return ""
	}
	_, id, _ := strings.Cut(statuses[0].ContainerID, "://")
	return id
}

// remove deletes a pod without a grace period. Its kubelet ends the remaining
// containers.
func (o *Options) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := o.Admin.CoreV1().Pods(Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		return fmt.Errorf("deleting Pod %s: %w", name, err)
	}
	return nil
}

// removeTimeout bounds the removal of a pod, because the API server may be unavailable.
const removeTimeout = 2 * time.Second

// instance is an instance of a replica that runs as a pod.
type instance struct {
	launcher       *relayLauncher
	replica, pod   string
	subject, relay string // container IDs
	logPath        string
	tunnel         *relay.Tunnel
	// follow copies the log of the subject to this machine. It ends when the subject's
	// process ends.
	follow *process.Process

	mu     sync.Mutex
	killed bool

	// checkingLoss is true while reportLoss checks whether a broken connection is a
	// failure. lossChecks counts these checks, so that awaitEnd can wait for them.
	checkingLoss atomic.Bool
	lossChecks   sync.WaitGroup

	done chan struct{}
	err  error // set before done is closed
}
