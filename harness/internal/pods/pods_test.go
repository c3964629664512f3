package pods

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// launched starts an instance of the replica subject-0.
func launched(t *testing.T, launch subject.Launcher) subject.Instance {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	i, err := launch(ctx, "subject-0")
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func awaitEnd(t *testing.T, i subject.Instance) *process.ExitError {
	t.Helper()
	select {
	case <-i.Done():
	case <-time.After(bound):
		t.Fatal("the instance does not end")
	}
	var exit *process.ExitError
	if !errors.As(i.Err(), &exit) {
		t.Fatalf("it ended with %v, want an exit", i.Err())
	}
	return exit
}

func TestInstance(t *testing.T) {
	for _, test := range []struct {
		name, script string
		end          func(context.Context, subject.Instance) error // ends the instance; nil if the process ends by itself
		code         int
		signal       syscall.Signal
		log          string
	}{
		{name: "killed", script: waitScript, code: -1, signal: syscall.SIGKILL, log: "begun",
			end: func(ctx context.Context, i subject.Instance) error { return i.Kill(ctx) }},
		{name: "asked to end", script: waitScript, log: "begun\nasked to end",
			end: func(ctx context.Context, i subject.Instance) error { return i.Stop(ctx, bound) }},
		{name: "asked to end, and does not", script: `trap '' TERM; echo begun; while :; do sleep 0.02; done`, code: -1, signal: syscall.SIGKILL, log: "begun",
			end: func(ctx context.Context, i subject.Instance) error { return i.Stop(ctx, 50*time.Millisecond) }},
		{name: "exits", script: `sleep 0.3; echo failed; exit 3`, code: 3, log: "failed"},
		{name: "ends by another signal", script: `echo begun; sleep 0.3; kill -SEGV $$`, code: -1, signal: syscall.SIGSEGV, log: "begun"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newFakeNode(t)
			n.script = test.script
			i := launched(t, n.launcher())
			if i.Err() != nil {
				t.Errorf("a running instance has the error %v", i.Err())
			}
			if test.end != nil {
				for deadline := time.After(bound); !strings.Contains(i.LogTail(), "begun"); {
					select {
					case <-deadline:
						t.Fatal("the log is empty")
					case <-time.After(10 * time.Millisecond):
					}
				}
				if err := test.end(t.Context(), i); err != nil {
					t.Fatal(err)
				}
			}
			exit := awaitEnd(t, i)
			if exit.Code != test.code || exit.Signal != test.signal || exit.LogTail != test.log {
				t.Errorf("code %d, signal %v, log %q; want %d, %v, %q", exit.Code, exit.Signal, exit.LogTail, test.code, test.signal, test.log)
			}
			left, err := n.admin.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) > 0 {
				t.Errorf("pods left: %v, %v", left, err)
			}
		})
	}
}

// TestTunnel checks that a replica can connect to the proxy with its kubeconfig, before and
// after a restart.
func TestTunnel(t *testing.T) {
	n := newFakeNode(t)
	launch := n.launcher()
	for _, pod := range []string{"subject-0-1", "subject-0-2"} {
		i := launched(t, launch)
		if _, err := n.admin.CoreV1().Pods(Namespace).Get(t.Context(), pod, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		secret, err := n.admin.CoreV1().Secrets(Namespace).Get(t.Context(), "subject-0-config", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load(secret.Data[kubeconfigFile])
		if err != nil {
			t.Fatal(err)
		}
		at, as := config.Clusters["gauntlet"], config.AuthInfos["gauntlet"]
		if at.Server != "https://127.0.0.1:10800" || string(at.CertificateAuthorityData) != "the proxy's CA" || as.TokenFile != "/var/run/gauntlet/token/token" {
			t.Errorf("kubeconfig of the subject: cluster %+v, user %+v", at, as)
		}
		conn, err := net.Dial("tcp", n.ports[10800].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		received, err := io.ReadAll(conn)
		conn.Close()
		if string(received) != "proxy" || err != nil {
			t.Errorf("received %q through the tunnel, error %v", received, err)
		}
		if err := i.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.lost) > 0 {
		t.Errorf("losses: %v", n.lost)
	}
}

// TestLogFollowerKilled checks that an instance continues if somebody kills the process that
// copies its log.
func TestLogFollowerKilled(t *testing.T) {
	n := newFakeNode(t)
	i := launched(t, n.launcher())
	if err := n.follows[0].Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-i.Done():
		t.Fatalf("the instance ended while its process was running: %v", i.Err())
	case <-time.After(300 * time.Millisecond):
	}
	if err := n.subjects[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := awaitEnd(t, i); exit.Signal != syscall.SIGKILL {
		t.Errorf("it ended with %v", exit)
	}
}

// TestLoss checks that a lost connection to the relay is reported only while the program under test
// is running.
func TestLoss(t *testing.T) {
	for _, test := range []struct {
		name         string
		killSubject  bool
		wantReported bool
	}{{"the subject is running", false, true}, {"the subject has ended", true, false}} {
		t.Run(test.name, func(t *testing.T) {
			n := newFakeNode(t)
			i := launched(t, n.launcher()).(*instance)
			if test.killSubject {
				if err := i.Kill(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			i.reportLoss(t.Context(), errors.New("a loss"))
			i.lossChecks.Wait()
			if reported := len(n.lost) > 0; reported != test.wantReported {
				t.Errorf("reported: %v", n.lost)
			}
			if err := i.Stop(t.Context(), bound); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	for _, test := range []struct {
		name, replica, refuse, want string
		within                      time.Duration
	}{
		{"no image", "subject-0", "ErrImageNeverPull", "the image localhost/subject:test is neither on node node nor in the local container engine", bound},
		{"never", "subject-0", "ContainerCreating", "waiting for pod gauntlet-system/subject-0-1 to start", 50 * time.Millisecond},
		{"a name without a number", "subject", "", `replica "subject": expected a name such as subject-0`, bound},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newFakeNode(t)
			n.refuse = test.refuse
			ctx, cancel := context.WithTimeout(t.Context(), test.within)
			defer cancel()
			if _, err := n.launcher()(ctx, test.replica); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			left, err := n.admin.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) > 0 {
				t.Errorf("pods left: %v, %v", left, err)
			}
		})
	}
}

func TestDeploy(t *testing.T) {
	n := newFakeNode(t)
	if err := Deploy(t.Context(), n.options(), 2, []byte("the cluster's CA")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"subject-0", "subject-1"} {
		pod, err := n.admin.CoreV1().Pods(Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || len(pod.Spec.InitContainers) != 0 {
			t.Errorf("%s: restart policy %s, %d sidecars", name, pod.Spec.RestartPolicy, len(pod.Spec.InitContainers))
		}
		secret, err := n.admin.CoreV1().Secrets(Namespace).Get(t.Context(), name+"-config", metav1.GetOptions{})
		if err != nil || !strings.Contains(string(secret.Data[kubeconfigFile]), "server: https://127.0.0.1:6443") {
			t.Errorf("%s: kubeconfig %s, error %v", name, secret.Data[kubeconfigFile], err)
		}
	}
}

// TestManifest checks that Kubernetes neither schedules nor restarts the pod of a replica. The
// pod must have only the permissions, credentials and ports that the options give it.
func TestManifest(t *testing.T) {
	n := newFakeNode(t)
	o := n.options()
	pod := o.manifest("subject-1-1", "subject-1", corev1.RestartPolicyNever)
	addRelay(pod, Image{Reference: "relay"}, &replicaTunnel{replica: "subject-1", index: 1})
	spec := pod.Spec
	if spec.NodeName != "node" || !spec.HostNetwork || spec.RestartPolicy != corev1.RestartPolicyNever ||
		*spec.AutomountServiceAccountToken || spec.ServiceAccountName != "subject" || !*spec.SecurityContext.RunAsNonRoot {
		t.Errorf("pod spec %+v; want one on node \"node\" without restarts, token and root user", spec)
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if c.ImagePullPolicy != corev1.PullNever || !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || c.SecurityContext.Capabilities.Drop[0] != "ALL" {
			t.Errorf("container %s: %+v; want image pull policy Never and a restricted security context", c.Name, c)
		}
	}
	if args := strings.Join(spec.InitContainers[0].Args, " "); args != "--subject=127.0.0.1:10801 --control=0.0.0.0:10901 --identity=/etc/gauntlet/relay --patience=30s" {
		t.Errorf("arguments of the relay: %s; want those of replica 1", args)
	}
	if ports := Ports(2); len(ports) != 2 || ports[1] != 10901 {
		t.Errorf("Ports(2) = %v, want 2 ports with 10901 as the last one", ports)
	}
}

func TestLogIsAppended(t *testing.T) {
	n := newFakeNode(t)
	n.script = `echo one instance; exit 1`
	launch := n.launcher()
	for range 2 {
		if exit := awaitEnd(t, launched(t, launch)); exit.Code != 1 {
			t.Errorf("it ended with %v", exit)
		}
	}
	log, err := os.ReadFile(n.dir + "/logs/subject-0.log")
	if string(log) != "one instance\none instance\n" || err != nil {
		t.Errorf("the log is %q, error %v", log, err)
	}
}
