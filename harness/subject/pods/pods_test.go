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

	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// launched begins a life of subject-0.
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
		t.Fatal("it does not end")
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
		end          func(context.Context, subject.Instance) error // nil: by itself
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
		{name: "by itself", script: `sleep 0.3; echo last words; exit 3`, code: 3, log: "last words"},
		{name: "by a signal of somebody else", script: `echo begun; sleep 0.3; kill -SEGV $$`, code: -1, signal: syscall.SIGSEGV, log: "begun"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newFakeNode(t)
			m.script = test.script
			i := launched(t, m.launcher())
			if i.Err() != nil {
				t.Errorf("it lives and has ended with %v", i.Err())
			}
			if test.end != nil {
				for deadline := time.After(bound); !strings.Contains(i.LogTail(), "begun"); {
					select {
					case <-deadline:
						t.Fatal("its log does not come")
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
			left, err := m.admin.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) > 0 {
				t.Errorf("its pod is left: %v, %v", left, err)
			}
		})
	}
}

// TestTunnel: a subject that follows its kubeconfig gets to the proxy, in each of
// its lives.
func TestTunnel(t *testing.T) {
	m := newFakeNode(t)
	launch := m.launcher()
	for _, pod := range []string{"subject-0-1", "subject-0-2"} {
		i := launched(t, launch)
		if _, err := m.admin.CoreV1().Pods(Namespace).Get(t.Context(), pod, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		secret, err := m.admin.CoreV1().Secrets(Namespace).Get(t.Context(), "subject-0-config", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load(secret.Data[kubeconfigFile])
		if err != nil {
			t.Fatal(err)
		}
		at, as := config.Clusters["gauntlet"], config.AuthInfos["gauntlet"]
		if at.Server != "https://127.0.0.1:10800" || string(at.CertificateAuthorityData) != "the proxy's CA" || as.TokenFile != "/var/run/gauntlet/token/token" {
			t.Errorf("the subject is told %+v, as %+v", at, as)
		}
		conn, err := net.Dial("tcp", m.ports[10800].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		heard, err := io.ReadAll(conn)
		conn.Close()
		if string(heard) != "proxy" || err != nil {
			t.Errorf("at the other end is %q, error %v", heard, err)
		}
		if err := i.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.lost) > 0 {
		t.Errorf("losses: %v", m.lost)
	}
}

// TestLogFollowerKilled: a life is not over because nobody follows it any more.
func TestLogFollowerKilled(t *testing.T) {
	m := newFakeNode(t)
	i := launched(t, m.launcher())
	if err := m.follows[0].Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-i.Done():
		t.Fatalf("it is over while its process runs: %v", i.Err())
	case <-time.After(300 * time.Millisecond):
	}
	if err := m.subjects[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := awaitEnd(t, i); exit.Signal != syscall.SIGKILL {
		t.Errorf("it ended with %v", exit)
	}
}

// TestLoss: that a relay goes is reported while its subject lives, and only then.
func TestLoss(t *testing.T) {
	for _, test := range []struct {
		name         string
		killSubject  bool
		wantReported bool
	}{{"of a subject that lives", false, true}, {"of one that has ended", true, false}} {
		t.Run(test.name, func(t *testing.T) {
			m := newFakeNode(t)
			i := launched(t, m.launcher()).(*instance)
			if test.killSubject {
				if err := i.Kill(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			i.reportLoss(t.Context(), errors.New("a loss"))
			i.lossChecks.Wait()
			if reported := len(m.lost) > 0; reported != test.wantReported {
				t.Errorf("reported: %v", m.lost)
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
		{"no image", "subject-0", "ErrImageNeverPull", "the node node does not have the image localhost/subject:test", bound},
		{"never", "subject-0", "ContainerCreating", "waiting for the pod subject-0-1", 50 * time.Millisecond},
		{"a name without a number", "subject", "", `replica "subject": expected a name such as subject-0`, bound},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newFakeNode(t)
			m.refuse = test.refuse
			ctx, cancel := context.WithTimeout(t.Context(), test.within)
			defer cancel()
			if _, err := m.launcher()(ctx, test.replica); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			left, err := m.admin.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) > 0 {
				t.Errorf("a pod is left: %v, %v", left, err)
			}
		})
	}
}

func TestDeploy(t *testing.T) {
	m := newFakeNode(t)
	if err := Deploy(t.Context(), m.options(), 2, []byte("the cluster's CA")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"subject-0", "subject-1"} {
		pod, err := m.admin.CoreV1().Pods(Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || len(pod.Spec.InitContainers) != 0 {
			t.Errorf("%s: restart policy %s, %d sidecars", name, pod.Spec.RestartPolicy, len(pod.Spec.InitContainers))
		}
		secret, err := m.admin.CoreV1().Secrets(Namespace).Get(t.Context(), name+"-config", metav1.GetOptions{})
		if err != nil || !strings.Contains(string(secret.Data[kubeconfigFile]), "server: https://127.0.0.1:6443") {
			t.Errorf("%s is told %s, error %v", name, secret.Data[kubeconfigFile], err)
		}
	}
}

// TestManifest: nothing but a run moves, feeds or restarts a replica, and it has
// no right, no credential and no way beside what it was given.
func TestManifest(t *testing.T) {
	m := newFakeNode(t)
	o := m.options()
	pod := o.manifest("subject-1-1", "subject-1", corev1.RestartPolicyNever)
	addRelay(pod, Image{Reference: "relay"}, &replicaTunnel{replica: "subject-1", index: 1})
	spec := pod.Spec
	if spec.NodeName != "node" || !spec.HostNetwork || spec.RestartPolicy != corev1.RestartPolicyNever ||
		*spec.AutomountServiceAccountToken || spec.ServiceAccountName != "subject" || !*spec.SecurityContext.RunAsNonRoot {
		t.Errorf("the pod is %+v", spec)
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if c.ImagePullPolicy != corev1.PullNever || !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || c.SecurityContext.Capabilities.Drop[0] != "ALL" {
			t.Errorf("the container %s is %+v", c.Name, c)
		}
	}
	if args := strings.Join(spec.InitContainers[0].Args, " "); args != "--subject=127.0.0.1:10801 --control=0.0.0.0:10901 --identity=/etc/gauntlet/relay --patience=30s" {
		t.Errorf("the relay is run with %s", args)
	}
	if ports := Ports(2); len(ports) != 2 || ports[1] != 10901 {
		t.Errorf("the ports within reach are %v", ports)
	}
}

func TestLogIsAppended(t *testing.T) {
	m := newFakeNode(t)
	m.script = `echo one life; exit 1`
	launch := m.launcher()
	for range 2 {
		if exit := awaitEnd(t, launched(t, launch)); exit.Code != 1 {
			t.Errorf("it ended with %v", exit)
		}
	}
	log, err := os.ReadFile(m.dir + "/logs/subject-0.log")
	if string(log) != "one life\none life\n" || err != nil {
		t.Errorf("the log is %q, error %v", log, err)
	}
}
