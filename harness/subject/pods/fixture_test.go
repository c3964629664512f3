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
	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// bound is far above what anything here takes.
const bound = 20 * time.Second

// podLogs is where a node has its pods' logs.
const podLogs = "/var/log/pods"

// fakeNode is a node without an engine, and its kubelet: the process of a subject
// is a shell that waits, relays serve in this process, and the shell scripts run
// here, with a `ctr` that knows those processes.
type fakeNode struct {
	t     *testing.T
	admin *fake.Clientset
	dir   string
	// script is what a subject does; refuse is a reason not to start it.
	script, refuse string

	mu       sync.Mutex
	follows  []*process.Process
	subjects []*exec.Cmd
	control  map[int]net.Listener // of relays, by the port of the node
	ports    map[int]net.Listener // of relays, where their subjects connect
	lost     []error
	cleanups []func()
}

const waitScript = `trap 'echo asked to end; exit 0' TERM; echo begun; while :; do sleep 0.02; done`

func newFakeNode(t *testing.T) *fakeNode {
	t.Helper()
	m := &fakeNode{
		t: t, admin: fake.NewClientset(), dir: t.TempDir(), script: waitScript,
		control: map[int]net.Listener{}, ports: map[int]net.Listener{},
	}
	// Prints the tasks that have not been reaped.
	ctr := "#!/bin/sh\necho TASK PID STATUS\nfor f in " + m.dir + "/tasks/*; do\n" +
		"[ -f \"$f\" ] && kill -0 $(cat \"$f\") 2>/dev/null && echo \"$(basename \"$f\") $(cat \"$f\") RUNNING\"\ndone\nexit 0\n"
	for _, err := range []error{
		os.MkdirAll(filepath.Join(m.dir, "bin"), 0o755),
		os.MkdirAll(filepath.Join(m.dir, "tasks"), 0o755),
		os.WriteFile(filepath.Join(m.dir, "bin", "ctr"), []byte(ctr), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m.admin.PrependReactor("create", "pods", m.kubelet)
	t.Cleanup(func() {
		m.mu.Lock()
		undo := m.cleanups
		m.mu.Unlock()
		for _, f := range slices.Backward(undo) {
			f()
		}
	})
	return m
}

// kubelet starts what a pod is made of, and writes its status.
func (m *fakeNode) kubelet(action clienttesting.Action) (bool, runtime.Object, error) {
	pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
	pod.UID = "uid"
	status := corev1.ContainerStatus{Name: subjectContainer, Image: pod.Spec.Containers[0].Image}
	if m.refuse != "" {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: m.refuse}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		return false, pod, nil
	}
	if len(pod.Spec.InitContainers) > 0 {
		m.startRelay(pod)
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: relayContainer, ContainerID: "containerd://relay-of-" + pod.Name}}
	}
	status.ContainerID = "containerd://" + pod.Name
	status.State.Running = &corev1.ContainerStateRunning{}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if err := m.admin.Tracker().Create(action.GetResource(), pod, Namespace); err != nil {
		return true, nil, err
	}
	m.startSubject(pod) // which may end before anybody looks
	return true, pod, nil
}

// startSubject starts a process whose log is as containerd writes it.
func (m *fakeNode) startSubject(pod *corev1.Pod) {
	dir := filepath.Join(m.dir, podLogs, fmt.Sprintf("%s_%s_%s", Namespace, pod.Name, pod.UID), subjectContainer)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Error(err)
		return
	}
	log, err := os.Create(filepath.Join(dir, "0.log"))
	if err != nil {
		m.t.Error(err)
		return
	}
	cmd := exec.Command("sh", "-c", "echo() { printf '2026-01-01T00:00:00.0Z stderr F %s\n' \"$*\"; }; "+m.script)
	cmd.Stdout = log
	if err := cmd.Start(); err != nil {
		m.t.Error(err)
		return
	}
	task := filepath.Join(m.dir, "tasks", pod.Name)
	if err := os.WriteFile(task, fmt.Append(nil, cmd.Process.Pid), 0o600); err != nil {
		m.t.Error(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
		log.Close()
		m.terminated(pod.Name, cmd.ProcessState)
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subjects = append(m.subjects, cmd)
	m.cleanups = append(m.cleanups, func() { _ = cmd.Process.Kill(); <-ended })
}

// terminated writes into a pod's status how its subject ended, if the pod is there.
func (m *fakeNode) terminated(name string, how *os.ProcessState) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	found, err := m.admin.Tracker().Get(pods, Namespace, name)
	if err != nil {
		return
	}
	pod := found.(*corev1.Pod).DeepCopy()
	code := how.ExitCode()
	if status, ok := how.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code)}}
	_ = m.admin.Tracker().Update(pods, pod, Namespace) // gone in this moment
}

// startRelay serves what the pod's relay would, by its arguments and its secret.
func (m *fakeNode) startRelay(pod *corev1.Pod) {
	var subjectAt, controlAt int
	for _, arg := range pod.Spec.InitContainers[0].Args {
		_, _ = fmt.Sscanf(arg, "--subject=127.0.0.1:%d", &subjectAt)
		_, _ = fmt.Sscanf(arg, "--control=0.0.0.0:%d", &controlAt)
	}
	found, err := m.admin.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), Namespace, relaySecret(pod.Labels["gauntlet/replica"]))
	if err != nil {
		m.t.Error(err)
		return
	}
	files := found.(*corev1.Secret).Data
	var listeners [2]net.Listener
	for i := range listeners {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			m.t.Error(err)
			return
		}
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	served := make(chan error, 1)
	go func() {
		served <- relay.Serve(ctx, relay.Options{
			Subject: listeners[0], Control: listeners[1], Patience: bound,
			Identity: relay.Identity{Certificate: files["tls.crt"], Key: files["tls.key"], Authority: files["ca.crt"]},
		})
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ports[subjectAt], m.control[controlAt] = listeners[0], listeners[1]
	m.cleanups = append(m.cleanups, func() {
		cancel()
		if err := <-served; err != nil {
			m.t.Error(err)
		}
	})
}

func (m *fakeNode) Name() string      { return "node" }
func (m *fakeNode) APIServer() string { return "https://127.0.0.1:6443" }

func (m *fakeNode) env() []string {
	return append(os.Environ(), "PATH="+filepath.Join(m.dir, "bin")+":"+os.Getenv("PATH"))
}

func (m *fakeNode) Exec(ctx context.Context, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = m.env()
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func (m *fakeNode) Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error) {
	for i, word := range command {
		if strings.HasPrefix(word, podLogs) {
			command[i] = filepath.Join(m.dir, word)
		}
	}
	p, err := process.Start(ctx, process.Spec{Name: name, Path: "/bin/sh", Args: command[1:], Env: m.env(), LogPath: logPath})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.follows = append(m.follows, p)
	return p, err
}

func (m *fakeNode) Dial(ctx context.Context, port int) (net.Conn, error) {
	m.mu.Lock()
	listener := m.control[port]
	m.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("nobody listens on %d", port)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
}

// launcher launches replicas on the machine, with a proxy that says "proxy" to
// whoever connects.
func (m *fakeNode) launcher() subject.Launcher {
	m.t.Helper()
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { proxy.Close() })
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
	return Launcher(m.options(), RelayOptions{
		Image: Image{Reference: "localhost/relay:test"},
		Route: func(_ string, config *rest.Config) error {
			config.Host, config.CAData = "https://"+proxy.Addr().String(), []byte("the proxy's CA")
			return nil
		},
		Lost: func(_ string, err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.lost = append(m.lost, err)
		},
	}, filepath.Join(m.dir, "logs"))
}

func (m *fakeNode) options() Options {
	return Options{
		Subject: Image{Reference: "localhost/subject:test"}, Settings: subject.Settings{LeaseDuration: 15 * time.Second},
		Admin: m.admin, Node: m, Clock: clock.RealClock{},
	}
}
