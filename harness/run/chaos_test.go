package run

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// silent is a control plane that says how it is only when it is let.
type silent struct {
	cluster.Cluster
	asked  chan struct{}
	well   chan struct{}
	halted chan cluster.Part
}

func (s *silent) Health(ctx context.Context) error {
	s.asked <- struct{}{}
	select {
	case <-s.well:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *silent) Halt(_ context.Context, part cluster.Part) error {
	s.halted <- part
	return nil
}

func (s *silent) Resume(context.Context, cluster.Part) error { return nil }

// TestActsAtOnce: a fault does not wait until the control plane has said how it is,
// unless another fault has it out of order.
func TestActsAtOnce(t *testing.T) {
	asked := parse(t, `name: x
description: x
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 1}
faults:
  - api-server-restart: {}
  - etcd-restart: {}
`)
	c := &silent{asked: make(chan struct{}, 10), well: make(chan struct{}), halted: make(chan cluster.Part)}
	s := &stage{Options: &Options{Scenario: asked, Clock: clock.RealClock{}}, lookout: newTestLookout(t), cluster: c}
	worked := make(chan struct{})
	acted := make(chan error, 2)
	act := func(index int) {
		spec := asked.Faults[index]
		go func() {
			acted <- s.act(t.Context(), spec, s.lookout.expect(nil, nil, false), times{worked: worked}, &faults.Env{
				Cluster: c, Clock: s.Clock, Report: faults.NewReporter(s.lookout, index, spec.Name),
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
	case <-c.asked:
	case <-c.halted:
		t.Fatal("halted etcd while the API server was out of order")
	}
	close(c.well)
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
