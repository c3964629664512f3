package run

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// blockedCluster is a control plane whose health check blocks until healthy is closed.
type blockedCluster struct {
	cluster.Cluster
	healthAsked chan struct{}
	healthy     chan struct{}
	halted      chan cluster.Component
}

func (s *blockedCluster) Health(ctx context.Context) error {
	s.healthAsked <- struct{}{}
	select {
	case <-s.healthy:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *blockedCluster) Halt(_ context.Context, part cluster.Component) error {
	s.halted <- part
	return nil
}

func (s *blockedCluster) Resume(context.Context, cluster.Component) error { return nil }

func newRecorder(t *testing.T) *history.Recorder {
	t.Helper()
	recorder, err := history.Create(filepath.Join(t.TempDir(), "history.jsonl"), history.Start{}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	return recorder
}

// TestFaultDoesNotWaitForHealth verifies that a fault begins without a health check of the control
// plane. If another fault makes the control plane unavailable, the first fault must wait for a
// healthy control plane.
func TestFaultDoesNotWaitForHealth(t *testing.T) {
	spec := parse(t, `name: x
description: x
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 1}
faults:
  - api-server-restart: {}
  - etcd-restart: {}
`)
	c := &blockedCluster{healthAsked: make(chan struct{}, 10), healthy: make(chan struct{}), halted: make(chan cluster.Component)}
	dispatcher := environment.NewDispatcher(newRecorder(t), clock.RealClock{})
	s := &Session{Options: &Options{Scenario: spec, Clock: clock.RealClock{}}, Environment: &environment.Environment{Cluster: c, Dispatcher: dispatcher}}
	workloadDone := make(chan struct{})
	applied := make(chan error, 2)
	apply := func(index int) {
		spec := spec.Faults[index]
		go func() {
			applied <- s.applyFault(t.Context(), spec, dispatcher.Subscribe(nil, nil, false), faultTiming{end: workloadDone}, &faults.Env{
				Cluster: c, Clock: s.Clock, Report: faults.NewReporter(dispatcher, index, spec.Name),
			})
		}()
	}
	wantHalted := func(want cluster.Component) {
		t.Helper()
		select {
		case got := <-c.halted:
			if got != want {
				t.Fatalf("halted %s, want %s", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not halted", want)
		}
	}
	apply(0)
	wantHalted(cluster.APIServer)
	apply(1)
	select {
	case <-c.healthAsked:
	case <-c.halted:
		t.Fatal("etcd was halted while the API server was unavailable")
	}
	close(c.healthy)
	wantHalted(cluster.Etcd)
	close(workloadDone)
	for range 2 {
		if err := <-applied; err != nil {
			t.Error(err)
		}
	}
	if n := s.outages.Load(); n != 0 {
		t.Errorf("%d active outages after all faults are healed, want 0", n)
	}
}
