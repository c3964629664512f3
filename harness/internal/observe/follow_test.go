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
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded/embeddedtest"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// The tests in this file run on a real control plane, which `gauntlet setup` builds.

const namespace = "observed"

// fixture contains a real control plane, a Recorder and the records that the Recorder has
// received.
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
	f := &fixture{t: t, cluster: embeddedtest.Start(t)}
	var err error
	f.admin, err = kubernetes.NewForConfig(f.cluster.Config(cluster.Admin))
	f.must(err)
	f.etcd, err = f.cluster.Etcd(t.Context())
	f.must(err)
	t.Cleanup(func() { f.must(f.etcd.Close()) })
	f.recorder, err = history.Create(filepath.Join(t.TempDir(), "history.jsonl"), history.Start{}, clock.RealClock{}, func(r *history.Record) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.records = append(f.records, *r)
	})
	f.must(err)
	_, err = f.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	f.must(err)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) options() FollowOptions {
	service, _ := kube.Named(kube.Service)
	return FollowOptions{Etcd: f.etcd, Namespace: namespace, Kinds: []kube.Kind{service}, Recorder: f.recorder}
}

// create creates a Service.
func (f *fixture) create(name string) {
	f.t.Helper()
	_, err := f.admin.CoreV1().Services(namespace).Create(f.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	f.must(err)
}

// change sets a label of a Service.
func (f *fixture) change(name, label string) {
	f.t.Helper()
	_, err := f.admin.CoreV1().Services(namespace).Patch(f.t.Context(), name, "application/merge-patch+json",
		[]byte(`{"metadata": {"labels": {"test": "`+label+`"}}}`), metav1.PatchOptions{})
	f.must(err)
}

// remove deletes a Service.
func (f *fixture) remove(name string) {
	f.t.Helper()
	f.must(f.admin.CoreV1().Services(namespace).Delete(f.t.Context(), name, metav1.DeleteOptions{}))
}

// compact removes all revisions before the current one from etcd.
func (f *fixture) compact() {
	f.t.Helper()
	present, err := f.etcd.Get(f.t.Context(), "/", clientv3.WithCountOnly())
	f.must(err)
	_, err = f.etcd.Compact(f.t.Context(), present.Header.Revision)
	f.must(err)
}

// serviceCommits returns a description of each recorded change of a Service, and the number of
// gap records.
func (f *fixture) serviceCommits(follower *Follower) (commits []string, gaps int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	f.must(follower.CatchUp(ctx))
	follower.Stop()
	f.must(f.recorder.Close())
	f.mu.Lock()
	defer f.mu.Unlock()
	last := history.Version(0)
	for _, r := range f.records {
		switch {
		case r.Gap != nil:
			gaps++
		case r.Commit == nil || r.Commit.Object.Resource != "services":
		default:
			commits = append(commits, string(r.Commit.Type)+" "+r.Commit.Object.Name+" "+r.Commit.Object.Labels["test"])
			if r.Commit.Object.Version < last && gaps == 0 {
				f.t.Errorf("%s at version %d after version %d", r.Commit.Object.Ref, r.Commit.Object.Version, last)
			}
			last = r.Commit.Object.Version
		}
	}
	return commits, gaps
}

// TestOutages checks that the Follower misses no change when the API server and etcd are killed
// and restarted. The test also compacts etcd between the restarts.
func TestOutages(t *testing.T) {
	f := newFixture(t)
	f.create("before")
	follower, err := Follow(t.Context(), f.options())
	f.must(err)
	f.change("before", "1")
	f.must(follower.CatchUp(t.Context())) // without CatchUp, the compaction could remove revisions that the Follower has not received
	f.compact()
	for _, part := range []cluster.Component{cluster.APIServer, cluster.Etcd, cluster.APIServer} {
		name := "with-" + string(part)
		f.create(name)
		f.change(name, "1") // a watch on the API server might miss this change
		f.must(f.cluster.Halt(t.Context(), part))
		f.must(f.cluster.Resume(t.Context(), part))
		f.change(name, "2")
		f.remove(name)
		f.must(follower.CatchUp(t.Context()))
		f.compact()
	}
	commits, gaps := f.serviceCommits(follower)
	want := []string{"ADDED before ", "MODIFIED before 1"}
	for _, name := range []string{"with-kube-apiserver", "with-etcd", "with-kube-apiserver"} {
		want = append(want, "ADDED "+name+" ", "MODIFIED "+name+" 1", "MODIFIED "+name+" 2", "DELETED "+name+" 2")
	}
	if diff := cmp.Diff(want, commits); diff != "" || gaps != 0 {
		t.Errorf("%d gaps, commits (-want +got):\n%s", gaps, diff)
	}
}

// TestSameAsAPIServer checks that an object version read from etcd is equal to the version that
// the API server returns.
func TestSameAsAPIServer(t *testing.T) {
	f := newFixture(t)
	f.create("web")
	follower, err := Follow(t.Context(), f.options())
	f.must(err)
	f.change("web", "1")
	shown, err := f.admin.CoreV1().Services(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	f.must(err)
	want, err := history.Project("services", shown)
	f.must(err)
	f.serviceCommits(follower)
	for _, r := range f.records {
		if r.Commit != nil && r.Commit.Object.Version == want.Version {
			if diff := cmp.Diff(want, r.Commit.Object); diff != "" {
				t.Errorf("recorded object (-API server +etcd):\n%s", diff)
			}
			return
		}
	}
	t.Errorf("version %d was not recorded", want.Version)
}

// TestGap checks that a Follower records a gap, which says that the history is incomplete. The
// reason is that etcd has compacted revisions that the Follower has not received. The Follower must
// then continue with the current objects.
func TestGap(t *testing.T) {
	f := newFixture(t)
	f.create("stays")
	f.create("changes")
	f.create("goes")
	follower, err := Follow(t.Context(), f.options())
	f.must(err)
	f.must(follower.CatchUp(t.Context()))
	follower.Stop()
	f.change("changes", "1")
	f.remove("goes")
	f.create("comes")
	f.compact()
	follower.ended = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	follower.cancel = cancel
	go func() {
		defer close(follower.ended)
		follower.run(ctx)
	}()
	commits, gaps := f.serviceCommits(follower)
	want := []string{
		"ADDED stays ", "ADDED changes ", "ADDED goes ",
		"DELETED goes ", "MODIFIED changes 1", "ADDED comes ",
	}
	if diff := cmp.Diff(want, commits); diff != "" || gaps != 1 {
		t.Errorf("%d gaps, want 1; commits (-want +got):\n%s", gaps, diff)
	}
}
