package sweep_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/sweep"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

func request(verb, resource, subresource string) *history.Record {
	return &history.Record{Request: &history.Request{Verb: verb, Resource: resource, Subresource: subresource}}
}

func records(all ...*history.Record) iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestWrites(t *testing.T) {
	got, err := sweep.Writes(records(
		request("watch", "pods", ""),
		request("create", "pods", ""),
		request("update", "replicasets.apps", "status"),
		request("update", "leases.coordination.k8s.io", ""),
		request("create", "pods", ""),
		request("create", "events", ""),
		request("update", "replicasets.apps", ""),
		&history.Record{Step: &history.Step{}},
		request("create", "pods", ""),
	))
	want := []sweep.Write{
		{"create", "pods", "", 1}, {"update", "replicasets.apps", "status", 1}, {"create", "pods", "", 2},
		{"update", "replicasets.apps", "", 1}, {"create", "pods", "", 3},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
	broken := errors.New("cut short")
	if _, err := sweep.Writes(func(yield func(*history.Record, error) bool) { yield(nil, broken) }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// TestWithoutFaults checks that the workload of every scenario awaits that all objects have
// settled. It must not await deleted objects.
func TestWithoutFaults(t *testing.T) {
	s := parse(t, `
name: some
description: some things come and go
workload:
  - create: {kind: Deployment, name: web, replicas: 3, version: v1}
  - create: {kind: Deployment, name: held, replicas: 3}
  - create: {kind: ReplicaSet, name: gone, replicas: 3}
  - create: {kind: ReplicationController, name: old, replicas: 3}
  - create: {kind: Service, name: web, selector: {app: web}}
  - pause: {name: held}
  - delete: {kind: ReplicaSet, name: gone}
faults:
  - watch-stall: {resource: pods}
exercises: [converged]
`)
	calm := sweep.WithoutFaults(s)
	if len(calm.Faults) != 0 || len(calm.Exercises) != 0 || len(s.Faults) != 1 {
		t.Errorf("%d faults, %d exercises; %d faults in what it was made from", len(calm.Faults), len(calm.Exercises), len(s.Faults))
	}
	var waits []string
	for _, step := range calm.Workload[len(s.Workload):] {
		waits = append(waits, step.String())
	}
	want := []string{
		"await Deployment web complete within 1m0s", "await Deployment held available within 1m0s",
		"await ReplicationController old available within 1m0s",
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAt checks that each disturbance returns a valid scenario with one fault, for each write
// of each library scenario.
func TestAt(t *testing.T) {
	writes := []sweep.Write{{"create", "pods", "", 7}, {"update", "deployments.apps", "status", 2}, {"delete", "endpoints", "", 1}}
	for _, s := range library.All() {
		calm := sweep.WithoutFaults(s)
		for _, disturbance := range sweep.Disturbances {
			for k, write := range writes {
				disturbed, err := disturbance.At(calm, k+1, write)
				if err != nil {
					t.Fatalf("%s at %s: %v", disturbance.Name, write, err)
				}
				if err := run.Validate(disturbed); err != nil || len(disturbed.Faults) != 1 {
					t.Errorf("%s: %d faults, error %v", disturbed.Name, len(disturbed.Faults), err)
				}
			}
		}
	}
	m, err := sweep.Find(sweep.Disturbances[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	disturbed, err := m.At(parse(t, "name: x\ndescription: y\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n"), 9, writes[1])
	if err != nil {
		t.Fatal(err)
	}
	if want := "At write 9, the update of deployments.apps/status number 2, " + m.Description + "."; !strings.HasSuffix(disturbed.Description, want) {
		t.Errorf("described as %q, want it to end with %q", disturbed.Description, want)
	}
}

func TestFind(t *testing.T) {
	if _, err := sweep.Find("luck"); err == nil || !strings.HasPrefix(err.Error(), `found disturbance "luck"; expected `) {
		t.Errorf("error %v", err)
	}
}

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
