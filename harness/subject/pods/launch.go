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
	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// pollInterval is the time between two looks at a pod that is starting.
const pollInterval = 100 * time.Millisecond

// relayLauncher launches replicas behind relays.
type relayLauncher struct {
	Options
	RelayOptions
	logDir string

	prepareOnce sync.Once
	prepareErr  error

	mu      sync.Mutex
	tunnels map[string]*replicaTunnel
}

// Launcher returns the launcher of replicas that reach the API server through the
// fault proxy and nothing else. Their logs go to logDir while they live.
func Launcher(o Options, r RelayOptions, logDir string) subject.Launcher {
	l := &relayLauncher{Options: o, RelayOptions: r, logDir: logDir, tunnels: map[string]*replicaTunnel{}}
	return l.launch
}

// launch begins a life: a pod of its own, on the way that the replica always
// takes.
func (r *relayLauncher) launch(ctx context.Context, replica string) (subject.Instance, error) {
	w, err := r.tunnelOf(ctx, replica)
	if err != nil {
		return nil, err
	}
	w.instances++ // a replica begins one life at a time
	pod := r.manifest(fmt.Sprintf("%s-%d", replica, w.instances), replica, corev1.RestartPolicyNever)
	addRelay(pod, r.RelayOptions.Image, w)
	pod, err = r.Admin.CoreV1().Pods(Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating its pod: %w", err)
	}
	i, err := r.startInstance(ctx, pod, w)
	if err != nil {
		return nil, errors.Join(err, r.remove(ctx, pod.Name))
	}
	return i, nil
}

// tunnelOf is the way of a replica, made at its first life.
func (r *relayLauncher) tunnelOf(ctx context.Context, replica string) (*replicaTunnel, error) {
	r.prepareOnce.Do(func() { r.prepareErr = r.prepare(ctx) })
	if r.prepareErr != nil {
		return nil, r.prepareErr
	}
	r.mu.Lock()
	w := r.tunnels[replica]
	r.mu.Unlock()
	if w != nil {
		return w, nil
	}
	w, err := r.newTunnel(ctx, replica)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.tunnels[replica] = w
	r.mu.Unlock()
	return w, nil
}

// startInstance waits until the pod's subject runs, and lets it through to the proxy.
func (r *relayLauncher) startInstance(ctx context.Context, pod *corev1.Pod, w *replicaTunnel) (*instance, error) {
	pod, err := r.awaitStart(ctx, pod.Name)
	if err != nil {
		return nil, err
	}
	i := &instance{
		launcher: r, replica: w.replica, pod: pod.Name,
		logPath: filepath.Join(r.logDir, w.replica+".log"),
		subject: containerID(pod.Status.ContainerStatuses), relay: containerID(pod.Status.InitContainerStatuses),
		done: make(chan struct{}),
	}
	logFile := fmt.Sprintf("/var/log/pods/%s_%s_%s/%s/0.log", Namespace, pod.Name, pod.UID, subjectContainer)
	i.follow, err = r.Node.Follow(ctx, w.replica, i.logPath, shell(followScript, i.subject, logFile)...)
	if err != nil {
		return nil, fmt.Errorf("following its log: %w", err)
	}
	asking := context.WithoutCancel(ctx)
	if i.tunnel, err = r.connect(ctx, w, func(err error) { i.reportLoss(asking, err) }); err != nil {
		if stopErr := i.follow.Kill(); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
		return nil, fmt.Errorf("%w; the end of its log:\n%s", err, i.follow.LogTail())
	}
	go i.awaitEnd(asking)
	return i, nil
}

// awaitStart waits until the subject of a pod has started, whatever came of it.
func (o *Options) awaitStart(ctx context.Context, name string) (pod *corev1.Pod, err error) {
	var hopeless error
	err = cluster.Poll(ctx, pollInterval, "the pod "+name, func(ctx context.Context) error {
		pod, err = o.Admin.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if started(pod) {
			return nil
		}
		if hopeless = cannotStart(pod); hopeless != nil {
			return nil
		}
		return fmt.Errorf("it is %s: %s", pod.Status.Phase, waitingFor(pod))
	})
	return pod, errors.Join(hopeless, err)
}

func started(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil || c.State.Terminated != nil {
			return true
		}
	}
	return false
}

// cannotStart is why a pod will never start, nil if it may.
func cannotStart(pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodFailed {
		return fmt.Errorf("the pod %s failed: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message)
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if waiting := c.State.Waiting; waiting != nil && waiting.Reason == "ErrImageNeverPull" {
			return fmt.Errorf("the node %s does not have the image %s, and the container engine here neither", pod.Spec.NodeName, c.Image)
		}
	}
	return nil
}

// waitingFor says what the containers of a pod wait for.
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

// containerID is the ID that containerd has for the one container.
func containerID(statuses []corev1.ContainerStatus) string {
	if len(statuses) == 0 {
		return ""
	}
	_, id, _ := strings.Cut(statuses[0].ContainerID, "://")
	return id
}

// remove deletes a pod at once. Its kubelet ends what still runs of it.
func (o *Options) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := o.Admin.CoreV1().Pods(Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		return fmt.Errorf("removing the pod %s: %w", name, err)
	}
	return nil
}

// removeTimeout bounds the removal of a pod: the API server may be what is down.
const removeTimeout = 2 * time.Second

// instance is a replica's life as a pod.
type instance struct {
	launcher       *relayLauncher
	replica, pod   string
	subject, relay string // the containers' IDs
	logPath        string
	tunnel         *relay.Tunnel
	// follow ends when the subject's process does.
	follow *process.Process

	mu     sync.Mutex
	killed bool

	// checkingLoss is held while the node is asked about a loss; asks counts those.
	checkingLoss atomic.Bool
	lossChecks   sync.WaitGroup

	done chan struct{}
	err  error // set before done is closed
}
