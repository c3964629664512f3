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
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// somebodys is a cluster that this package did not make, and its kubeconfig.
func somebodys(t *testing.T) (c *embedded.Cluster, kubeconfig string) {
	t.Helper()
	dir := t.TempDir()
	c, err := embedded.Start(t.Context(), embedded.Options{Nodes: 1, Dir: dir, LogDir: filepath.Join(dir, "logs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	kubeconfig = filepath.Join(dir, "admin.kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, c.Config(cluster.Admin)); err != nil {
		t.Fatal(err)
	}
	return c, kubeconfig
}

// itsOwn runs the four controllers on a cluster, as those that it has itself.
func itsOwn(t *testing.T, c *embedded.Cluster) *subject.Subject {
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

// TestClaim: a run has the cluster to itself, acts there under a name of its own,
// and leaves nothing.
func TestClaim(t *testing.T) {
	t.Parallel()
	_, kubeconfig := somebodys(t)
	o := existing.Options{Kubeconfig: kubeconfig, Pods: 1_000_000}
	if _, err := existing.Start(t.Context(), o); !errors.Is(err, existing.ErrNoRoom) {
		t.Errorf("with more pods than there is room for: error %v, expected %v", err, existing.ErrNoRoom)
	}
	o.Pods = 10
	c, err := existing.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	const taken = "another run is on it, or one was killed"
	if _, err := existing.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("a second run: error %v, expected %q in it", err, taken)
	}
	admin := kubernetes.NewForConfigOrDie(c.Config(cluster.Admin))
	if _, err := existing.Clean(t.Context(), admin); !errors.Is(err, existing.ErrInUse) {
		t.Errorf("cleaning beside a run that goes on: error %v, expected %v", err, existing.ErrInUse)
	}
	me, err := kubernetes.NewForConfigOrDie(c.Config(cluster.Subject)).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := me.Status.UserInfo.Username, "system:serviceaccount:gauntlet:subject"; got != want {
		t.Errorf("the subject is %q to the API server, expected %q", got, want)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().Namespaces().Get(t.Context(), existing.Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is left: error %v", err)
	}
	if removed, err := existing.Clean(t.Context(), admin); removed || err != nil {
		t.Errorf("cleaning what is clean: %v, %v", removed, err)
	}
}

// TestDisplace: a cluster that runs the four controllers is refused, unless a
// program turns them off; it is told to turn them on again.
func TestDisplace(t *testing.T) {
	t.Parallel()
	c, kubeconfig := somebodys(t)
	own := itsOwn(t, c)
	o := existing.Options{Kubeconfig: kubeconfig}
	want := "somebody runs the " + strings.Join(cluster.SubjectControllers, ", ")
	if _, err := existing.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, expected %q in it", err, want)
	}

	o.ControllerSwitch = filepath.Join(t.TempDir(), "displace")
	said := o.ControllerSwitch + ".said"
	if err := os.WriteFile(o.ControllerSwitch, []byte("#!/bin/sh\necho \"$1 $KUBECONFIG\" >>"+said+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var turnedOff errgroup.Group
	turnedOff.Go(func() error { // a moment after the program has returned
		err := cluster.Poll(t.Context(), 10*time.Millisecond, "the program to be called", func(context.Context) error {
			_, err := os.Stat(said)
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
	got, err := os.ReadFile(said)
	if want := "off " + kubeconfig + "\non " + kubeconfig + "\n"; string(got) != want {
		t.Errorf("the program was told %q, expected %q (%v)", got, want, err)
	}
}

// TestRefuses: what cannot be used is refused in one line that says what is wrong.
func TestRefuses(t *testing.T) {
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
		{"no such file", filepath.Join(dir, "none"), "", "expected a kubeconfig (--kubeconfig, --context, or KUBECONFIG)"},
		{"no kubeconfig", broken, "", "expected a kubeconfig"},
		{"no such context", unreachable, "other", `context "other" does not exist`},
		{"nobody answers", unreachable, "", "the API server at https://127.0.0.1:1 is not ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := existing.Start(t.Context(), existing.Options{Kubeconfig: test.kubeconfig, Context: test.context})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, expected a line with %q", err, test.want)
			}
		})
	}
}
