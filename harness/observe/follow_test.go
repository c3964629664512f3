package observe

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// The tests of this file run on a real control plane, which `make upstream` builds.

const namespace = "observed"

// fixture is what a test observes, and what was recorded of it.
type fixture struct {
	t        *testing.T
	cluster  *embedded.Cluster
	admin    kubernetes.Interface
	etcd     *clientv3.Client
	recorder *history.Recorder

	mu      sync.Mutex
	records []history.Record
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	c, err := embedded.Start(t.Context(), embedded.Options{Nodes: 1, Dir: dir, LogDir: filepath.Join(dir, "logs")})
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{t: t, cluster: c}
	t.Cleanup(func() { s.must(c.Stop(context.WithoutCancel(t.Context()))) })
	s.admin, err = kubernetes.NewForConfig(c.Config(cluster.Admin))
	s.must(err)
	s.etcd, err = c.Etcd(t.Context())
	s.must(err)
	t.Cleanup(func() { s.must(s.etcd.Close()) })
	s.recorder, err = history.Create(filepath.Join(dir, "history.jsonl"), history.Start{}, clock.RealClock{}, func(r *history.Record) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.records = append(s.records, *r)
	})
	s.must(err)
	_, err = s.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	s.must(err)
	return s
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) options() FollowOptions {
	return FollowOptions{Etcd: s.etcd, Namespace: namespace, Recorder: s.recorder}
}

// create makes a Service, change labels it, remove deletes it.
func (s *fixture) create(name string) {
	s.t.Helper()
	_, err := s.admin.CoreV1().Services(namespace).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	s.must(err)
}

func (s *fixture) change(name, label string) {
	s.t.Helper()
	_, err := s.admin.CoreV1().Services(namespace).Patch(s.t.Context(), name, "application/merge-patch+json",
		[]byte(`{"metadata": {"labels": {"test": "`+label+`"}}}`), metav1.PatchOptions{})
	s.must(err)
}

func (s *fixture) remove(name string) {
	s.t.Helper()
	s.must(s.admin.CoreV1().Services(namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// compact throws away what was in etcd up to now.
func (s *fixture) compact() {
	s.t.Helper()
	present, err := s.etcd.Get(s.t.Context(), "/", clientv3.WithCountOnly())
	s.must(err)
	_, err = s.etcd.Compact(s.t.Context(), present.Header.Revision)
	s.must(err)
}

// serviceCommits returns in words what was recorded of Services, and how many gaps.
func (s *fixture) serviceCommits(o *Follower) (told []string, gaps int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	s.must(o.CatchUp(ctx))
	o.Stop()
	s.must(s.recorder.Close())
	s.mu.Lock()
	defer s.mu.Unlock()
	last := history.Version(0)
	for _, r := range s.records {
		switch {
		case r.Gap != nil:
			gaps++
		case r.Commit == nil || r.Commit.Object.Resource != "services":
		default:
			told = append(told, string(r.Commit.Type)+" "+r.Commit.Object.Name+" "+r.Commit.Object.Labels["test"])
			if r.Commit.Object.Version < last && gaps == 0 {
				s.t.Errorf("%s at version %d after version %d", r.Commit.Object.Ref, r.Commit.Object.Version, last)
			}
			last = r.Commit.Object.Version
		}
	}
	return told, gaps
}

// TestOutages: nothing is missed when the API server and etcd are killed and
// start again, nor when the past is thrown away in between.
func TestOutages(t *testing.T) {
	s := newFixture(t)
	s.create("before")
	o, err := Follow(t.Context(), s.options())
	s.must(err)
	s.change("before", "1")
	s.must(o.CatchUp(t.Context())) // what has not been seen when it is thrown away is a gap indeed
	s.compact()
	for _, part := range []cluster.Part{cluster.APIServer, cluster.Etcd, cluster.APIServer} {
		name := "with-" + string(part)
		s.create(name)
		s.change(name, "1") // which a watch at the API server might never tell of
		s.must(s.cluster.Halt(t.Context(), part))
		s.must(s.cluster.Resume(t.Context(), part))
		s.change(name, "2")
		s.remove(name)
		s.must(o.CatchUp(t.Context()))
		s.compact()
	}
	told, gaps := s.serviceCommits(o)
	want := []string{"ADDED before ", "MODIFIED before 1"}
	for _, name := range []string{"with-kube-apiserver", "with-etcd", "with-kube-apiserver"} {
		want = append(want, "ADDED "+name+" ", "MODIFIED "+name+" 1", "MODIFIED "+name+" 2", "DELETED "+name+" 2")
	}
	if diff := cmp.Diff(want, told); diff != "" || gaps != 0 {
		t.Errorf("%d gaps, truth (-want +got):\n%s", gaps, diff)
	}
}

// TestSameAsAPIServer: a version that is read from etcd is the same as the
// API server shows it.
func TestSameAsAPIServer(t *testing.T) {
	s := newFixture(t)
	s.create("web")
	o, err := Follow(t.Context(), s.options())
	s.must(err)
	s.change("web", "1")
	shown, err := s.admin.CoreV1().Services(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	s.must(err)
	want, err := history.Project("services", shown)
	s.must(err)
	s.serviceCommits(o)
	for _, r := range s.records {
		if r.Commit != nil && r.Commit.Object.Version == want.Version {
			if diff := cmp.Diff(want, r.Commit.Object); diff != "" {
				t.Errorf("(-API server +etcd):\n%s", diff)
			}
			return
		}
	}
	t.Errorf("version %d was not recorded", want.Version)
}

// TestGap: a follower that has lost its place says so, and goes on with what is
// there.
func TestGap(t *testing.T) {
	s := newFixture(t)
	s.create("stays")
	s.create("changes")
	s.create("goes")
	o, err := Follow(t.Context(), s.options())
	s.must(err)
	s.must(o.CatchUp(t.Context()))
	o.Stop()
	s.change("changes", "1")
	s.remove("goes")
	s.create("comes")
	s.compact()
	o.ended = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	o.cancel = cancel
	go func() {
		defer close(o.ended)
		o.run(ctx)
	}()
	told, gaps := s.serviceCommits(o)
	want := []string{
		"ADDED stays ", "ADDED changes ", "ADDED goes ",
		"DELETED goes ", "MODIFIED changes 1", "ADDED comes ",
	}
	if diff := cmp.Diff(want, told); diff != "" || gaps != 1 {
		t.Errorf("%d gaps, want 1; truth (-want +got):\n%s", gaps, diff)
	}
}
