package explore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestWithoutFaults checks that the workload of every scenario waits until all existing objects
// have settled. It must not wait for deleted objects.
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
	calm := explore.WithoutFaults(s)
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

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
