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
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// stuckScenario is a scenario that cannot converge, because no pod becomes ready in time.
const stuckScenario = `
name: stuck
description: pods that become ready only after the end of the run
cluster: {podStartDelay: 1m}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
    await: {until: scaled}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3}
settle: {within: 2s, quiet: 1s}
`

// TestDiagnostics verifies the diagnostics of a run that does not converge. The files must contain
// the pending objects, all objects, metrics and goroutines, but no credentials.
func TestDiagnostics(t *testing.T) {
	for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
		t.Run(target.String(), func(t *testing.T) {
			result, err := Run(t.Context(), options(parse(t, stuckScenario), target, t.TempDir(), func(m string) { t.Log(m) }))
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range result.Results {
				if result.Check == "process-alive" && result.Verdict != check.Pass {
					t.Errorf("process-alive: %s (%s), want pass: the run ended the subject", result.Verdict, result.Reason)
				}
			}
			for name, part := range map[string]string{
				"diagnostics/pending.txt":              "0 pods are ready, expected 3",
				"diagnostics/replicasets.yaml":         "name: web",
				"diagnostics/pods.yaml":                "generateName: web-",
				"diagnostics/events.yaml":              "SuccessfulCreate",
				"diagnostics/subject-0.metrics.txt":    "\nworkqueue_depth{",
				"diagnostics/subject-0.goroutines.txt": "goroutine 1 ",
				"report.html":                          "0 pods are ready, expected 3",
			} {
				content, err := os.ReadFile(filepath.Join(result.Directory, name))
				if err != nil || !strings.Contains(string(content), part) {
					t.Errorf("%s: error %v, want %q in it", name, err, part)
				}
			}
			requireNothingLeft(t, result.Directory)
			requireNoCredentials(t, result.Directory)
		})
	}
}

// fakeReplica is a replica of the controllers under test without a debug endpoint. It logs the
// calls of its methods. A stackDumper also has the method DumpStacks.
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
func (fakeReplica) CommandLine() []string              { return nil }
func (q stackDumper) DumpStacks(context.Context) error { q.record("ended"); close(q.done); return nil }
func (r fakeReplica) Stop(context.Context, time.Duration) error {
	r.record("stopped")
	close(r.done)
	return nil
}

func (r fakeReplica) Fetch(_ context.Context, path string) ([]byte, error) {
	r.record("fetch " + path)
	return nil, errors.New("no response")
}

// healthyCluster is a control plane that is healthy unless failed is set.
type healthyCluster struct {
	cluster.Cluster
	failed error
}

func (w healthyCluster) Err() error { return w.failed }

// TestTakeSnapshot verifies which replicas takeSnapshot asks for diagnostics, and which it ends. It
// must end a replica only after it has asked all replicas, and only if the replica can dump stacks.
// After an interruption or a failure of the control plane, it must ask no replica.
func TestTakeSnapshot(t *testing.T) {
	const metrics, goroutines = " fetch " + subject.MetricsPath, " fetch " + subject.GoroutinesPath
	allFetches := []string{"subject-0" + metrics, "subject-0" + goroutines, "subject-1" + metrics, "subject-1" + goroutines}
	for _, test := range []struct {
		name        string
		dumpsStacks bool
		converged   bool
		failed      error
		runErr      error
		want        []string
	}{
		{name: "processes", dumpsStacks: true, want: slices.Concat(allFetches, []string{"subject-0 ended", "subject-1 ended"})},
		{name: "processes that have converged", dumpsStacks: true, converged: true, want: allFetches},
		{name: "pods", want: allFetches},
		{name: "interrupted", dumpsStacks: true, runErr: errInterrupted},
		{name: "without a control plane", dumpsStacks: true, failed: errors.New("etcd ended"), runErr: errors.New("etcd ended")},
		{name: "aborted for another reason", runErr: errors.New("the disk is full"), want: allFetches},
	} {
		t.Run(test.name, func(t *testing.T) {
			noted := new(callLog)
			l := environment.NewDispatcher(newRecorder(t), clock.RealClock{})
			all, err := subject.Start(t.Context(), subject.Options{
				Target: subject.Upstream, Replicas: 2, Admin: fake.NewClientset(), Recorder: l,
				Launch: func(_ context.Context, name string) (subject.Instance, error) {
					r := fakeReplica{name: name, log: noted, done: make(chan struct{})}
					if test.dumpsStacks {
						return stackDumper{r}, nil
					}
					return r, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := &Session{
				Options: &Options{Scenario: &scenario.Scenario{}}, monitor: newMonitor(),
				Environment: &environment.Environment{Subject: all, Cluster: healthyCluster{failed: test.failed}, Admin: unreachable(t)},
			}
			if !test.converged {
				s.monitor.observe(unscaledReplicaSet)
			}
			diagnostics := s.takeSnapshot(t.Context(), test.runErr)
			if (len(diagnostics.pending) == 0) != test.converged {
				t.Errorf("pending %q", diagnostics.pending)
			}
			if diff := cmp.Diff(test.want, noted.calls); diff != "" {
				t.Errorf("calls of the replicas (-want +got):\n%s", diff)
			}
			for _, file := range diagnostics.files {
				dumped := strings.Contains(string(file.content), "the run ended the replica")
				if dumped != (test.dumpsStacks && !test.converged && strings.HasSuffix(file.name, ".goroutines.txt")) {
					t.Errorf("%s: %s", file.name, file.content)
				}
			}
			if err := all.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}

// unscaledReplicaSet is the commit of a ReplicaSet that has not converged.
var unscaledReplicaSet = &history.Record{Commit: &history.Commit{Type: history.Added, Object: history.Object{
	Ref:  history.Ref{Resource: "replicasets.apps", Namespace: environment.Namespace, Name: "web", UID: "web", Version: 1},
	Body: json.RawMessage(`{"spec":{"replicas":1}}`),
}}}

// unreachable returns a client for an address at which no API server listens.
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
			t.Errorf("%q matches as a credential: %t, want %t", text, got, want)
		}
	}
}

// TestSnapshotNeededFor verifies that failed runs and runs that did not converge need their
// snapshot. Other runs must not need a snapshot.
func TestSnapshotNeededFor(t *testing.T) {
	for _, test := range []struct {
		name        string
		diagnostics *snapshot
		verdict     check.Verdict
		want        bool
	}{
		{"passed", &snapshot{}, check.Pass, false},
		{"failed, converged", &snapshot{}, check.Fail, true},
		{"unknown, not converged", &snapshot{pending: []string{"x"}}, check.Unknown, true},
		{"known upstream issue, not converged", &snapshot{pending: []string{"x"}}, check.KnownUpstream, true},
		{"aborted before a snapshot", nil, check.Fail, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.diagnostics.neededFor(&reports.Run{Verdict: test.verdict}); got != test.want {
				t.Errorf("wanted: %t; want %t", got, test.want)
			}
		})
	}
}

// TestSnapshotWrite verifies that diagnostics contain objects as YAML without managed fields. An
// invalid file must not prevent the other files.
func TestSnapshotWrite(t *testing.T) {
	diagnostics := &snapshot{files: []snapshotFile{
		{name: "invalid.json", content: []byte("{")},
		{name: "pods.json", content: []byte(`{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","managedFields":[{"manager":"x"}]}}]}`)},
	}}
	diagnostics.add("subject-0.metrics.txt", unavailable(subject.ErrNoDebugEndpoint))
	dir := filepath.Join(t.TempDir(), "diagnostics")
	if err := diagnostics.write(dir); err != nil {
		t.Fatal(err)
	}
	if err := convertDiagnostics(dir); err == nil {
		t.Error("no error for objects that cannot be decoded")
	}
	for name, want := range map[string]string{
		"pods.yaml":             "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: web\nkind: PodList\n",
		"subject-0.metrics.txt": "not available: the replica has no debug endpoint\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: error %v, found\n%s\nwant\n%s", name, err, got, want)
		}
	}
}
