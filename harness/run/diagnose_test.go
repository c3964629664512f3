package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// stuckScenario is a run that cannot converge: no pod ever becomes ready.
const stuckScenario = `
name: stuck
description: pods that start long after the run
cluster: {podStartDelay: 1m}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
    await: {until: scaled}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3}
settle: {within: 2s, quiet: 1s}
`

// TestDiagnostics: a run that has not converged leaves what is pending, the objects, and
// the subject's metrics and goroutines; nothing of it is a credential.
func TestDiagnostics(t *testing.T) {
	for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
		t.Run(target.String(), func(t *testing.T) {
			judged, err := Run(t.Context(), options(parse(t, stuckScenario), target, t.TempDir(), func(m string) { t.Log(m) }))
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range judged.Results {
				if result.Check == "process-alive" && result.Verdict != check.Pass {
					t.Errorf("alive: %s (%s), want pass: the subject was ended by the run", result.Verdict, result.Reason)
				}
			}
			for name, part := range map[string]string{
				"diagnostics/pending.txt":              "0 of 3 pods ready",
				"diagnostics/replicasets.yaml":         "name: web",
				"diagnostics/pods.yaml":                "generateName: web-",
				"diagnostics/events.yaml":              "SuccessfulCreate",
				"diagnostics/subject-0.metrics.txt":    "\nworkqueue_depth{",
				"diagnostics/subject-0.goroutines.txt": "goroutine 1 ",
				"report.html":                          "0 of 3 pods ready",
			} {
				content, err := os.ReadFile(filepath.Join(judged.Directory, name))
				if err != nil || !strings.Contains(string(content), part) {
					t.Errorf("%s: error %v, want %q in it", name, err, part)
				}
			}
			requireNothingLeft(t, judged.Directory)
			requireNoCredentials(t, judged.Directory)
		})
	}
}

// fakeReplica is an instance that says nothing, and notes what it is asked, and when it
// is ended; a quitter can say in its log what it did.
type fakeReplica struct {
	name string
	log  *callLog
	done chan struct{}
}

type callLog struct {
	mu    sync.Mutex
	calls []string
}

type stackDumper struct{ fakeReplica }

func (r fakeReplica) record(what string) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.calls = append(r.log.calls, r.name+" "+what)
}

func (fakeReplica) PID() int                           { return 0 }
func (fakeReplica) Kill(context.Context) error         { return nil }
func (fakeReplica) Pause(context.Context) error        { return nil }
func (fakeReplica) Resume(context.Context) error       { return nil }
func (r fakeReplica) Done() <-chan struct{}            { return r.done }
func (fakeReplica) Err() error                         { return errors.New("ended") }
func (fakeReplica) Usage() *history.Usage              { return nil }
func (fakeReplica) LogTail() string                    { return "" }
func (q stackDumper) DumpStacks(context.Context) error { q.record("ended"); close(q.done); return nil }
func (r fakeReplica) Stop(context.Context, time.Duration) error {
	r.record("stopped")
	close(r.done)
	return nil
}

func (r fakeReplica) Fetch(_ context.Context, path string) ([]byte, error) {
	r.record("asked for " + path)
	return nil, errors.New("no answer")
}

// healthyCluster is a control plane that has failed if it has a reason.
type healthyCluster struct {
	cluster.Cluster
	failed error
}

func (w healthyCluster) Err() error { return w.failed }

// TestTakeSnapshot: replicas that say nothing are ended only where their logs can say it
// instead, and when all have been asked; of a run that was interrupted or has lost its
// control plane nobody is asked anything.
func TestTakeSnapshot(t *testing.T) {
	const metrics, goroutines = " asked for " + subject.MetricsPath, " asked for " + subject.GoroutinesPath
	asked := []string{"subject-0" + metrics, "subject-0" + goroutines, "subject-1" + metrics, "subject-1" + goroutines}
	for _, test := range []struct {
		name      string
		quits     bool
		converged bool
		failed    error
		broken    error
		want      []string
	}{
		{name: "processes", quits: true, want: slices.Concat(asked, []string{"subject-0 ended", "subject-1 ended"})},
		{name: "processes that have converged", quits: true, converged: true, want: asked},
		{name: "pods", want: asked},
		{name: "interrupted", quits: true, broken: errInterrupted},
		{name: "without a control plane", quits: true, failed: errors.New("etcd ended"), broken: errors.New("etcd ended")},
		{name: "broken off for another reason", broken: errors.New("the disk is full"), want: asked},
	} {
		t.Run(test.name, func(t *testing.T) {
			noted := new(callLog)
			l := newTestDispatcher(t)
			all, err := subject.Start(t.Context(), subject.Options{
				Target: subject.Upstream, Replicas: 2, Admin: fake.NewClientset(), Recorder: l,
				Launch: func(_ context.Context, name string) (subject.Instance, error) {
					r := fakeReplica{name: name, log: noted, done: make(chan struct{})}
					if test.quits {
						return stackDumper{r}, nil
					}
					return r, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := &testEnvironment{Options: &Options{}, monitor: newMonitor(), subject: all, cluster: healthyCluster{failed: test.failed}, admin: unreachable(t)}
			if !test.converged {
				s.monitor.observe(unscaledReplicaSet)
			}
			seen := s.takeSnapshot(t.Context(), test.broken)
			if (len(seen.pending) == 0) != test.converged {
				t.Errorf("pending %q", seen.pending)
			}
			if diff := cmp.Diff(test.want, noted.calls); diff != "" {
				t.Errorf("what became of the replicas (-want +got):\n%s", diff)
			}
			for _, file := range seen.files {
				said := strings.Contains(string(file.content), "it was ended")
				if said != (test.quits && !test.converged && strings.HasSuffix(file.name, ".goroutines.txt")) {
					t.Errorf("%s: %s", file.name, file.content)
				}
			}
			if err := all.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}

// unscaledReplicaSet is what keeps a monitor from holding that all has converged.
var unscaledReplicaSet = &history.Record{Commit: &history.Commit{Type: history.Added, Object: history.Object{
	Ref:  history.Ref{Resource: "replicasets.apps", Namespace: namespace, Name: "web", UID: "web", Version: 1},
	Body: json.RawMessage(`{"spec":{"replicas":1}}`),
}}}

// unreachable is a client of an API server that is not there.
func unreachable(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestCredentialPattern(t *testing.T) {
	for text, want := range map[string]bool{
		"-----BEGIN EC PRIVATE KEY-----":                       true,
		"client-key-data: LS0tLS1CRUdJTiBFQyBQUklWQVRF":        true,
		`"eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJlcm5ldGVz.c2ln"`: true,
		"authorization: Bearer abc":                            true,
		"kind: Secret":                                         true,
		`{"kind":"Secret"}`:                                    true,
		"kind: SecretsStore":                                   false,
		"container \"pause\" is ready":                         false,
	} {
		if got := credential.MatchString(text); got != want {
			t.Errorf("%q is taken for a credential: %t, want %t", text, got, want)
		}
	}
}

// TestSnapshotNeededFor: what was found only when the history was judged is looked into
// as well, and nothing is left of what passed.
func TestSnapshotNeededFor(t *testing.T) {
	for _, test := range []struct {
		name    string
		seen    *snapshot
		verdict check.Verdict
		want    bool
	}{
		{"passed", &snapshot{}, check.Pass, false},
		{"failed, and converged", &snapshot{}, check.Fail, true},
		{"passed as far as is known, and not converged", &snapshot{pending: []string{"x"}}, check.Unknown, true},
		{"upstream's known weakness", &snapshot{pending: []string{"x"}}, check.KnownUpstream, true},
		{"broken off before there was anything to look at", nil, check.Fail, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.seen.neededFor(&reports.Run{Verdict: test.verdict}); got != test.want {
				t.Errorf("wanted: %t; want %t", got, test.want)
			}
		})
	}
}

// TestSnapshotWrite: objects are for reading, without what nobody reads, and what
// cannot be read does not keep out the rest.
func TestSnapshotWrite(t *testing.T) {
	seen := &snapshot{files: []snapshotFile{
		{name: "broken.yaml", content: []byte("{"), objects: true},
		{name: "pods.yaml", objects: true, content: []byte(`{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","managedFields":[{"manager":"x"}]}}]}`)},
	}}
	seen.add("subject-0.metrics.txt", unavailable(subject.ErrNoDebugEndpoint))
	dir := filepath.Join(t.TempDir(), "diagnostics")
	if err := seen.write(dir); err == nil {
		t.Error("no error of objects that cannot be read")
	}
	for name, want := range map[string]string{
		"pods.yaml":             "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: web\nkind: PodList\n",
		"subject-0.metrics.txt": "not to be had: it serves nothing where it could be asked\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: error %v, found\n%s\nwant\n%s", name, err, got, want)
		}
	}
}
