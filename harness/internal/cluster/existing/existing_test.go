package existing_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded/embeddedtest"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// startExisting starts an embedded cluster, which the tests use as an existing cluster. The
// cluster's kube-controller-manager does not run the controllers in without. No argument without
// means the default controllers.
func startExisting(t *testing.T, without ...kube.Controller) (c *embedded.Cluster, kubeconfig string) {
	t.Helper()
	c = embeddedtest.Start(t, without...)
	kubeconfig = filepath.Join(t.TempDir(), "admin.kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, c.Config(cluster.Admin)); err != nil {
		t.Fatal(err)
	}
	return c, kubeconfig
}

// startOwnControllers starts a second kube-controller-manager, which runs the default controllers.
// Package existing takes them for the cluster's own controllers.
func startOwnControllers(t *testing.T, c *embedded.Cluster) *subject.Subject {
	t.Helper()
	binaries, err := embedded.FindBinaries("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := subject.Start(t.Context(), subject.Options{
		Target: subject.Upstream, Account: subject.User(), Replicas: 1, LeaseNamespace: subject.LeaseNamespace,
		Launch: subject.Local{
			Executable: binaries.KubeControllerManager,
			Settings:   subject.Settings{QPS: 100, Burst: 100, Concurrency: 1, LeaseDuration: 5 * time.Second, LeaseNamespace: subject.LeaseNamespace},
			Cluster:    c,
			Route:      func(string, *rest.Config) error { return nil },
			StateDir:   dir, LogDir: dir,
		}.Launcher(),
		Holder:   func(string) string { return "" },
		Admin:    kubernetes.NewForConfigOrDie(c.Config(cluster.Admin)),
		Recorder: &historytest.Recording{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := s.WaitForLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStartLocksCluster verifies that a second Start fails, and that Stop deletes the namespace.
func TestStartLocksCluster(t *testing.T) {
	t.Parallel()
	_, kubeconfig := startExisting(t)
	o := existing.Options{Existing: cluster.Existing{Kubeconfig: kubeconfig}, Pods: 1_000_000}
	if _, err := existing.Start(t.Context(), o); !errors.Is(err, cluster.ErrNoCapacity) {
		t.Errorf("Start() with more pods than the nodes have capacity for: error %v, want %v", err, cluster.ErrNoCapacity)
	}
	o.Pods = 10
	c, err := existing.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	const locked = "another run uses the cluster, or a run was killed"
	if _, err := existing.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), locked) {
		t.Errorf("Start() of a second run: error %v, want one that contains %q", err, locked)
	}
	admin := kubernetes.NewForConfigOrDie(c.Config(cluster.Admin))
	if _, err := existing.Clean(t.Context(), admin); !errors.Is(err, existing.ErrInUse) {
		t.Errorf("Clean() during a run: error %v, want %v", err, existing.ErrInUse)
	}
	review, err := kubernetes.NewForConfigOrDie(c.Config(cluster.Subject)).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:gauntlet:subject"; got != want {
		t.Errorf("user name of the subject: %q, want %q", got, want)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().Namespaces().Get(t.Context(), existing.Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("getting the namespace after Stop(): error %v, want NotFound", err)
	}
	if removed, err := existing.Clean(t.Context(), admin); removed || err != nil {
		t.Errorf("Clean() after Stop() = %v, error %v; want false and no error", removed, err)
	}
}

// TestControllerSwitch verifies that Start turns off active controllers with the program in
// ControllerSwitch. Without a program, Start must fail. Stop must run the program with the argument
// "on".
func TestControllerSwitch(t *testing.T) {
	t.Parallel()
	c, kubeconfig := startExisting(t)
	own := startOwnControllers(t, c)
	o := existing.Options{Existing: cluster.Existing{Kubeconfig: kubeconfig}}
	want := strings.Join(kube.DefaultControllers(), ", ") + " already active"
	if _, err := existing.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("Start() with active controllers: error %v, want one that contains %q", err, want)
	}

	o.ControllerSwitch = filepath.Join(t.TempDir(), "controller-switch")
	calls := o.ControllerSwitch + ".calls"
	if err := os.WriteFile(o.ControllerSwitch, []byte("#!/bin/sh\necho \"$1 $KUBECONFIG $CONTROLLERS\" >>"+calls+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var turnedOff errgroup.Group
	turnedOff.Go(func() error { // stops the controllers shortly after the program has exited
		err := cluster.Poll(t.Context(), 10*time.Millisecond, "the call of the program", func(context.Context) error {
			_, err := os.Stat(calls)
			return err
		})
		if err == nil {
			_, err = own.Kill(t.Context(), "subject-0")
		}
		return err
	})
	run, err := existing.Start(t.Context(), o)
	if err := errors.Join(err, turnedOff.Wait()); err != nil {
		t.Fatal(err)
	}
	if err := run.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(calls)
	arguments := kubeconfig + " " + strings.Join(kube.DefaultControllers(), ",") + "\n"
	if want := "off " + arguments + "on " + arguments; string(got) != want {
		t.Errorf("calls of the program: %q, want %q (error %v)", got, want, err)
	}
}

// TestControllersUnderTest verifies that Start rejects a cluster on which a controller under test
// is active. Start must also reject a cluster on which another default controller is inactive.
func TestControllersUnderTest(t *testing.T) {
	t.Parallel()
	statefulSet := kube.Controller{Name: "statefulset-controller"}
	deployment, err := kube.ControllersNamed("deployment-controller")
	if err != nil {
		t.Fatal(err)
	}
	_, kubeconfig := startExisting(t, statefulSet)
	o := existing.Options{Existing: cluster.Existing{Kubeconfig: kubeconfig}}
	start := func(want string, underTest ...kube.Controller) {
		t.Helper()
		o.Controllers = underTest
		run, err := existing.Start(t.Context(), o)
		switch {
		case want == "" && err != nil:
			t.Errorf("Start() with controllers %q under test: %v", kube.NamesOf(underTest), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("Start() with controllers %q under test: error %v, want one that contains %q", kube.NamesOf(underTest), err, want)
		}
		if err == nil {
			if err := run.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	start("", statefulSet)
	start("existing cluster: deployment-controller already active", statefulSet, deployment[0])
	start("existing cluster: replicationcontroller-controller, replicaset-controller, deployment-controller, endpoints-controller already active")

	_, o.Kubeconfig = startExisting(t) // this cluster runs none of the default controllers, like a cluster of `gauntlet up`
	start("existing cluster: statefulset-controller already active", statefulSet)
	start("existing cluster: replicationcontroller-controller, replicaset-controller, endpoints-controller not active", deployment...)
}

// TestStartErrors verifies that Start returns a one-line error with the reason if the kubeconfig is
// unusable.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unreachable := filepath.Join(dir, "unreachable")
	if err := cluster.WriteKubeconfig(unreachable, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("clusters: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, kubeconfig, context, want string
	}{
		{"no such file", filepath.Join(dir, "none"), "", "file does not exist; expected the path of a kubeconfig in --kubeconfig"},
		{"not a kubeconfig", broken, "", "loading the kubeconfig "},
		{"no such context", unreachable, "other", `context "other" does not exist`},
		{"unreachable API server", unreachable, "", "the API server at https://127.0.0.1:1 is not ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := existing.Start(t.Context(), existing.Options{Existing: cluster.Existing{Kubeconfig: test.kubeconfig, Context: test.context}})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Start(): error %v, want one line that contains %q", err, test.want)
			}
		})
	}
}
