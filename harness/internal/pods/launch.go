package pods

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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

// pollInterval is the time between two checks when this package waits for a condition.
const pollInterval = 100 * time.Millisecond

// relayLauncher starts replicas of the program under test as pods with a relay. The relay forwards
// all requests of the replica to the fault proxy.
type relayLauncher struct {
	Options
	RelayOptions
	logDir string // directory for the logs of the replicas

	prepareOnce sync.Once
	prepareErr  error // error of the only call of prepare, or nil

	mu      sync.Mutex
	tunnels map[string]*replicaTunnel // the tunnel of each replica, by the name of the replica
}

// Launcher returns a function that starts each replica of the program under test as a pod with a
// relay. The replica can reach the API server only through the relay and the fault proxy. The file
// <replica>.log in logDir gets a copy of the replica's log.
func Launcher(o Options, r RelayOptions, logDir string) subject.Launcher {
	l := &relayLauncher{Options: o, RelayOptions: r, logDir: logDir, tunnels: map[string]*replicaTunnel{}}
	return l.launch
}

// launch starts an instance of a replica and returns the instance. It creates a new pod, and
// connects the relay in this pod to the fault proxy.
func (r *relayLauncher) launch(ctx context.Context, replica string) (subject.Instance, error) {
	t, err := r.tunnelOf(ctx, replica)
	if err != nil {
		return nil, err
	}
	t.instances++ // needs no lock: a replica never starts two instances at a time
	pod := r.manifest(fmt.Sprintf("%s-%d", replica, t.instances), replica, corev1.RestartPolicyNever)
	addRelay(pod, r.RelayOptions.Image, t)
	pod, err = r.Admin.CoreV1().Pods(Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating the pod of replica %s in namespace %s: %w", replica, Namespace, err)
	}
	i, err := r.startInstance(ctx, pod, t)
	if err != nil {
		return nil, errors.Join(err, r.remove(ctx, pod.Name))
	}
	return i, nil
}

// tunnelOf returns the certificates and addresses that connect a replica to the fault proxy. The
// first call for a replica creates them.
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

// startInstance returns the instance that runs in a new pod. It waits until the container of the
// program under test has started. It then starts a process that copies the log, and connects the
// relay to the fault proxy.
func (r *relayLauncher) startInstance(ctx context.Context, pod *corev1.Pod, t *replicaTunnel) (*instance, error) {
	pod, err := r.awaitStart(ctx, pod.Name)
	if err != nil {
		return nil, err
	}
	i := &instance{
		launcher: r, replica: t.replica, pod: pod.Name,
		logPath: filepath.Join(r.logDir, t.replica+".log"),
		subject: containerID(pod.Status.ContainerStatuses), relay: containerID(pod.Status.InitContainerStatuses),
		commandLine: commandLine(pod),
		done:        make(chan struct{}),
	}
	i.pid = localPID("/proc", i.subject)
	logFile := fmt.Sprintf("/var/log/pods/%s_%s_%s/%s/0.log", Namespace, pod.Name, pod.UID, subjectContainer)
	i.follow, err = r.Node.Follow(ctx, t.replica, i.logPath, shell(followScript, i.subject, logFile)...)
	if err != nil {
		return nil, fmt.Errorf("starting to copy the log of replica %s: %w", t.replica, err)
	}
	checkCtx := context.WithoutCancel(ctx)
	if i.tunnel, err = r.connect(ctx, t, func(err error) { i.reportLoss(checkCtx, err) }); err != nil {
		if stopErr := i.follow.Kill(); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
		return nil, fmt.Errorf("%w; last lines of the log of %s:\n%s", err, t.replica, i.follow.LogTail())
	}
	go i.awaitEnd(checkCtx)
	return i, nil
}

// awaitStart waits until the container of the program under test has started in the pod with the
// given name. It returns the pod. At that time, the container may have exited again.
//
// If the pod can never start, awaitStart returns an error immediately.
func (o *Options) awaitStart(ctx context.Context, name string) (pod *corev1.Pod, err error) {
	var failure error
	err = cluster.Poll(ctx, pollInterval, "pod "+Namespace+"/"+name+" to start", func(ctx context.Context) error {
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
		return fmt.Errorf("pod %s/%s has phase %s: %s", pod.Namespace, pod.Name, pod.Status.Phase, waitingFor(pod))
	})
	return pod, errors.Join(failure, err)
}

// started reports whether the container of the program under test is running or has exited.
func started(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil || c.State.Terminated != nil {
			return true
		}
	}
	return false
}

// cannotStart returns an error with the reason if a pod will never start. It returns nil if the
// pod may still start.
func cannotStart(pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodFailed {
		return fmt.Errorf("pod %s/%s failed: %s %s", pod.Namespace, pod.Name, pod.Status.Reason, pod.Status.Message)
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if waiting := c.State.Waiting; waiting != nil && waiting.Reason == "ErrImageNeverPull" {
			return fmt.Errorf("pod %s/%s cannot start: the image %s is neither on node %s nor in the local container engine",
				pod.Namespace, pod.Name, c.Image, pod.Spec.NodeName)
		}
	}
	return nil
}

// waitingFor returns why the containers of a pod are not running, for error messages. An example
// is "relay: CrashLoopBackOff back-off 10s".
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

// containerID returns the container ID in the only element of statuses, without "containerd://".
// It returns "" if statuses is empty.
func containerID(statuses []corev1.ContainerStatus) string {
	if len(statuses) == 0 {
		return ""
	}
	_, id, _ := strings.Cut(statuses[0].ContainerID, "://")
	return id
}

// commandLine returns the image of the container of the program under test, followed by its command
// and arguments.
func commandLine(pod *corev1.Pod) []string {
	c := pod.Spec.Containers[0]
	return slices.Concat([]string{c.Image}, c.Command, c.Args)
}

// remove deletes the pod with the given name, without a grace period. It waits at most
// removeTimeout for the response of the API server, and not until the containers have stopped.
func (o *Options) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := o.Admin.CoreV1().Pods(Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		return fmt.Errorf("deleting pod %s/%s: %w", Namespace, name, err)
	}
	return nil
}

// removeTimeout is the maximum time that remove waits for the API server, which may be down.
const removeTimeout = 2 * time.Second

// instance is one process of a replica, in a pod of its own. A restart of the replica creates a
// new instance. The type instance implements [subject.Instance].
type instance struct {
	launcher       *relayLauncher
	replica, pod   string        // names of the replica and of the pod
	subject, relay string        // container IDs of the program under test and of the relay
	logPath        string        // path of the local copy of the log of the program under test
	commandLine    []string      // image of the program under test, and its command line
	pid            int           // process ID of the program under test on this machine; 0 if the program under test runs on another machine
	tunnel         *relay.Tunnel // connects the relay to the fault proxy
	// follow is a local process that copies the log of the program under test to logPath. It exits
	// after the process of the program under test has ended.
	follow *process.Process

	mu     sync.Mutex
	killed bool // true after the method Kill was called

	// checkingLoss is true while a goroutine of reportLoss checks whether the program under test
	// has ended. The field lossChecks counts these goroutines, so that awaitEnd can wait for them.
	checkingLoss atomic.Bool
	lossChecks   sync.WaitGroup

	done chan struct{} // closed when the process of the program under test has ended
	err  error         // how the process of the program under test has ended; set before done is closed
}
