package pods

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/relay"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// bound is the timeout of each operation in the tests. A normal operation takes much less time.
const bound = 20 * time.Second

// podLogs is the directory on a node where the kubelet writes the logs of pods.
const podLogs = "/var/log/pods"

// fakeNode is a Node with a fake kubelet, for tests without a container engine. It runs a shell
// script instead of the program under test, and each relay in a goroutine. It runs the scripts of
// node.go on this machine, with a fake `ctr`.
type fakeNode struct {
	t     *testing.T
	admin *fake.Clientset
	dir   string
	// script is the shell script that runs instead of the program under test. If refuse is not "",
	// the container does not start, and refuse is the reason in its waiting status.
	script, refuse string

	mu       sync.Mutex
	follows  []*process.Process
	subjects []*exec.Cmd
	control  map[int]net.Listener // listeners of relays for gauntlet, by port of the node
	ports    map[int]net.Listener // listeners of relays for the program under test, by port
	lost     []error
	cleanups []func()
}

const waitScript = `trap 'echo asked to end; exit 0' TERM; echo begun; while :; do sleep 0.02; done`

func newFakeNode(t *testing.T) *fakeNode {
	t.Helper()
	n := &fakeNode{
		t: t, admin: fake.NewClientset(), dir: t.TempDir(), script: waitScript,
		control: map[int]net.Listener{}, ports: map[int]net.Listener{},
	}
	// The fake ctr prints the process ID of each container whose process exists.
	ctr := "#!/bin/sh\necho TASK PID STATUS\nfor f in " + n.dir + "/tasks/*; do\n" +
		"[ -f \"$f\" ] && kill -0 $(cat \"$f\") 2>/dev/null && echo \"$(basename \"$f\") $(cat \"$f\") RUNNING\"\ndone\nexit 0\n"
	for _, err := range []error{
		os.MkdirAll(filepath.Join(n.dir, "bin"), 0o755),
		os.MkdirAll(filepath.Join(n.dir, "tasks"), 0o755),
		os.WriteFile(filepath.Join(n.dir, "bin", "ctr"), []byte(ctr), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	n.admin.PrependReactor("create", "pods", n.kubelet)
	t.Cleanup(func() {
		n.mu.Lock()
		undo := n.cleanups
		n.mu.Unlock()
		for _, f := range slices.Backward(undo) {
			f()
		}
	})
	return n
}

// kubelet reacts to the create of a pod: it starts the containers and writes the pod status.
func (n *fakeNode) kubelet(action clienttesting.Action) (bool, runtime.Object, error) {
	pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
	pod.UID = "uid"
	status := corev1.ContainerStatus{Name: subjectContainer, Image: pod.Spec.Containers[0].Image}
	if n.refuse != "" {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: n.refuse}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		return false, pod, nil
	}
	if len(pod.Spec.InitContainers) > 0 {
		n.startRelay(pod)
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: relayContainer, ContainerID: "containerd://relay-of-" + pod.Name}}
	}
	status.ContainerID = "containerd://" + pod.Name
	status.State.Running = &corev1.ContainerStateRunning{}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if err := n.admin.Tracker().Create(action.GetResource(), pod, Namespace); err != nil {
		return true, nil, err
	}
	n.startSubject(pod) // the script may end before anybody reads the pod
	return true, pod, nil
}

// startSubject starts the script instead of the program under test. The log has the format of
// containerd.
func (n *fakeNode) startSubject(pod *corev1.Pod) {
	dir := filepath.Join(n.dir, podLogs, fmt.Sprintf("%s_%s_%s", Namespace, pod.Name, pod.UID), subjectContainer)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		n.t.Error(err)
		return
	}
	log, err := os.Create(filepath.Join(dir, "0.log"))
	if err != nil {
		n.t.Error(err)
		return
	}
	cmd := exec.Command("sh", "-c", "echo() { printf '2026-01-01T00:00:00.0Z stderr F %s\n' \"$*\"; }; "+n.script)
	cmd.Stdout = log
	if err := cmd.Start(); err != nil {
		n.t.Error(err)
		return
	}
	task := filepath.Join(n.dir, "tasks", pod.Name)
	if err := os.WriteFile(task, fmt.Append(nil, cmd.Process.Pid), 0o600); err != nil {
		n.t.Error(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
		log.Close()
		n.terminated(pod.Name, cmd.ProcessState)
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subjects = append(n.subjects, cmd)
	n.cleanups = append(n.cleanups, func() { _ = cmd.Process.Kill(); <-ended })
}

// terminated writes an exit code to the status of the pod with the given name, if the pod exists.
// The exit code is that of the program under test.
func (n *fakeNode) terminated(name string, how *os.ProcessState) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	found, err := n.admin.Tracker().Get(pods, Namespace, name)
	if err != nil {
		return
	}
	pod := found.(*corev1.Pod).DeepCopy()
	code := how.ExitCode()
	if status, ok := how.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code)}}
	_ = n.admin.Tracker().Update(pods, pod, Namespace) // the pod may have been deleted meanwhile
}

// startRelay runs a relay, which forwards connections of the program under test, in a goroutine.
// The pod contains the arguments and the Secret of the relay.
func (n *fakeNode) startRelay(pod *corev1.Pod) {
	var subjectAt, controlAt int
	for _, arg := range pod.Spec.InitContainers[0].Args {
		_, _ = fmt.Sscanf(arg, "--subject=127.0.0.1:%d", &subjectAt)
		_, _ = fmt.Sscanf(arg, "--control=0.0.0.0:%d", &controlAt)
	}
	found, err := n.admin.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), Namespace, relaySecret(pod.Labels["gauntlet/replica"]))
	if err != nil {
		n.t.Error(err)
		return
	}
	files := found.(*corev1.Secret).Data
	var listeners [2]net.Listener
	for i := range listeners {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			n.t.Error(err)
			return
		}
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	served := make(chan error, 1)
	go func() {
		served <- relay.Serve(ctx, relay.Options{
			Subject: listeners[0], Control: listeners[1], Patience: bound,
			Identity: relay.Identity{Certificate: files["tls.crt"], Key: files["tls.key"], Authority: files["ca.crt"]},
		})
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[subjectAt], n.control[controlAt] = listeners[0], listeners[1]
	n.cleanups = append(n.cleanups, func() {
		cancel()
		if err := <-served; err != nil {
			n.t.Error(err)
		}
	})
}

func (n *fakeNode) Name() string      { return "node" }
func (n *fakeNode) APIServer() string { return "https://127.0.0.1:6443" }

func (n *fakeNode) env() []string {
	return append(os.Environ(), "PATH="+filepath.Join(n.dir, "bin")+":"+os.Getenv("PATH"))
}

func (n *fakeNode) Exec(ctx context.Context, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = n.env()
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func (n *fakeNode) Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error) {
	for i, word := range command {
		if strings.HasPrefix(word, podLogs) {
			command[i] = filepath.Join(n.dir, word)
		}
	}
	p, err := process.Start(ctx, process.Spec{Name: name, Path: "/bin/sh", Args: command[1:], Env: n.env(), LogPath: logPath})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.follows = append(n.follows, p)
	return p, err
}

func (n *fakeNode) Dial(ctx context.Context, port int) (net.Conn, error) {
	n.mu.Lock()
	listener := n.control[port]
	n.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("no listener on port %d", port)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
}

// launcher returns a Launcher that starts replicas on the fake node. Instead of the fault proxy,
// it starts a server that sends "proxy" to each client.
func (n *fakeNode) launcher() subject.Launcher {
	n.t.Helper()
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { proxy.Close() })
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("proxy"))
			conn.Close()
		}
	}()
	return Launcher(n.options(), RelayOptions{
		Image: Image{Reference: "localhost/relay:test"},
		Route: func(_ string, config *rest.Config) error {
			config.Host, config.CAData = "https://"+proxy.Addr().String(), []byte("the proxy's CA")
			return nil
		},
		Lost: func(_ string, err error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.lost = append(n.lost, err)
		},
	}, filepath.Join(n.dir, "logs"))
}

func (n *fakeNode) options() Options {
	return Options{
		Subject: Image{Reference: "localhost/subject:test"}, Settings: subject.Settings{LeaseDuration: 15 * time.Second},
		Admin: n.admin, Node: n, Clock: clock.RealClock{},
	}
}
