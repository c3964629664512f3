package run

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// blockedCluster is a control plane that says how it is only when it is let.
type blockedCluster struct {
	cluster.Cluster
	healthAsked chan struct{}
	healthy     chan struct{}
	halted      chan cluster.Part
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

func (s *blockedCluster) Halt(_ context.Context, part cluster.Part) error {
	s.halted <- part
	return nil
}

func (s *blockedCluster) Resume(context.Context, cluster.Part) error { return nil }

// TestFaultDoesNotWaitForHealth: a fault does not wait until the control plane has said how it is,
// unless another fault has it out of order.
func TestFaultDoesNotWaitForHealth(t *testing.T) {
	asked := parse(t, `name: x
description: x
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 1}
faults:
  - api-server-restart: {}
  - etcd-restart: {}
`)
	c := &blockedCluster{healthAsked: make(chan struct{}, 10), healthy: make(chan struct{}), halted: make(chan cluster.Part)}
	s := &testEnvironment{Options: &Options{Scenario: asked, Clock: clock.RealClock{}}, dispatcher: newTestDispatcher(t), cluster: c}
	worked := make(chan struct{})
	acted := make(chan error, 2)
	act := func(index int) {
		spec := asked.Faults[index]
		go func() {
			acted <- s.applyFault(t.Context(), spec, s.dispatcher.subscribe(nil, nil, false), faultTiming{workloadDone: worked}, &faults.Env{
				Cluster: c, Clock: s.Clock, Report: faults.NewReporter(s.dispatcher, index, spec.Name),
			})
		}()
	}
	wantHalted := func(want cluster.Part) {
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
	act(0)
	wantHalted(cluster.APIServer)
	act(1)
	select {
	case <-c.healthAsked:
	case <-c.halted:
		t.Fatal("halted etcd while the API server was out of order")
	}
	close(c.healthy)
	wantHalted(cluster.Etcd)
	close(worked)
	for range 2 {
		if err := <-acted; err != nil {
			t.Error(err)
		}
	}
	if n := s.outages.Load(); n != 0 {
		t.Errorf("%d outages in force when all are healed", n)
	}
}
