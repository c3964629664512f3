package run

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalogue"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// chaos runs the workload and, beside it, every fault in its time. It returns
// when the workload has ended and every fault is healed.
func (s *stage) chaos(ctx context.Context) error {
	s.mark(history.PhaseChaos)
	s.progress("chaos: %d steps, %d faults", len(s.Scenario.Workload), len(s.Scenario.Faults))
	var group errgroup.Group
	worked := make(chan struct{}) // closed when the workload has ended
	begun := s.Clock.Now()
	for i := range s.Scenario.Faults {
		group.Go(func() error { return s.fault(ctx, i, begun, worked) })
	}
	group.Go(func() error {
		defer close(worked)
		err := workload.Run(ctx, workload.Env{
			Client:    s.admin,
			Namespace: namespace,
			Recorder:  s.recorder,
			Clock:     s.Clock,
		}, s.Scenario.Workload)
		if errors.Is(err, workload.ErrUnmet) {
			s.progress("%v", err)
			return nil // for the checks to judge
		}
		return err
	})
	return group.Wait()
}

// fault takes one fault through its life: wait for its time, see that the
// control plane is healthy, inject, wait, heal, see that it is healthy again.
// Whatever ends the run, the fault is healed.
func (s *stage) fault(ctx context.Context, index int, begun time.Time, worked <-chan struct{}) (err error) {
	spec := s.Scenario.Faults[index]
	fault, err := newFault(spec)
	if err != nil {
		return err
	}
	over := worked // whatever lasts as long as the workload does not begin after it
	if spec.For > 0 {
		over = nil
	}
	report := faults.NewReporter(s.recorder, index, spec.Name)
	if !s.sleep(ctx, spec.From-s.Clock.Since(begun), over) {
		report.Failed(nil, fmt.Errorf("the workload ended before the fault began, at %s", spec.From))
		return ctx.Err()
	}
	if err := s.cluster.Health(ctx); err != nil {
		return fmt.Errorf("before fault %d (%s): %w", index, spec.Name, err)
	}
	env := &faults.Env{
		Rand:      s.random(index),
		Proxy:     s.proxy,
		Subject:   s.subject,
		Admin:     s.admin,
		Provider:  s.Provider,
		Namespace: namespace,
		Clock:     s.Clock,
		Report:    report,
	}
	defer func() { err = errors.Join(err, s.heal(ctx, fault, env)) }()
	if err := faults.Inject(ctx, fault, env); err != nil {
		return err
	}
	if spec.For > 0 {
		s.sleep(ctx, spec.For, nil)
		return ctx.Err()
	}
	select {
	case <-worked:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// newFault makes the fault that a scenario asks for. Its error says where the
// scenario is wrong.
func newFault(spec scenario.Fault) (faults.Fault, error) {
	kind, err := catalogue.Find(spec.Name)
	if err != nil {
		return nil, spec.Errorf("%w", err)
	}
	return kind.New(spec.Params)
}

// Supported is nil when a scenario can run on the provider's clusters: there is
// room for its pods, and every fault can happen. Its error says where the scenario
// asks for what cannot be.
func Supported(s *scenario.Scenario, provider string) error {
	if p, err := providerNamed(provider); err == nil && p.podsPerNode > 0 {
		if pods, room := s.PodsMax(), p.podsPerNode*s.Cluster.Nodes; pods > room {
			return s.Errorf("cluster.nodes", "%d pods at once on %d nodes of %s, which take %d; expected more nodes or fewer pods",
				pods, s.Cluster.Nodes, provider, room)
		}
	}
	for _, spec := range s.Faults {
		kind, err := catalogue.Find(spec.Name)
		if err != nil {
			return spec.Errorf("%w", err)
		}
		if !slices.Contains(kind.Providers, provider) {
			return spec.Errorf("cannot happen on %s; expected --provider=%s", provider, strings.Join(kind.Providers, " or "))
		}
		fault, err := kind.New(spec.Params)
		if err != nil {
			return err
		}
		if picky, ok := fault.(faults.Picky); ok {
			if err := picky.CannotHappenOn(provider); err != nil {
				return spec.Errorf("cannot happen on %s: %w", provider, err)
			}
		}
	}
	return nil
}

// brokenHealWithin bounds the healing once the run has broken off: the control
// plane may be what broke.
const brokenHealWithin = 3 * time.Second

// heal ends a fault, however the run ended, and sees that the control plane is
// healthy again.
func (s *stage) heal(ctx context.Context, fault faults.Fault, env *faults.Env) error {
	within := lowerWithin
	if ctx.Err() != nil { // there may be nothing left to be healed
		within = brokenHealWithin
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := faults.Heal(ctx, fault, env); err != nil {
		return err
	}
	if err := s.cluster.Health(ctx); err != nil {
		return fmt.Errorf("after %s: %w", env.Report, err)
	}
	return nil
}

// sleep waits, and reports whether neither ctx nor early ended before the time was over.
func (s *stage) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := s.Clock.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-early:
		return false
	case <-ctx.Done():
		return false
	}
}

// random is the fault's own source of draws: a fault that is added, removed or
// fires at another time does not change what the others draw.
func (s *stage) random(index int) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s", index, s.Scenario.Faults[index].Name)
	return rand.New(rand.NewPCG(s.Scenario.Seed, hash.Sum64()))
}
