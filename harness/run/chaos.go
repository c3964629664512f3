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
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// runChaos runs the workload and, beside it, every fault in its time. It returns
// when the workload has ended and every fault is healed.
func (s *testEnvironment) runChaos(ctx context.Context) error {
	if err := s.cluster.Health(ctx); err != nil {
		return fmt.Errorf("before the workload begins: %w", err)
	}
	s.beginPhase(history.PhaseChaos)
	s.progress("chaos: %d steps, %d faults", len(s.Scenario.Workload), len(s.Scenario.Faults))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worked := make(chan struct{}) // closed when the workload has ended
	t := faultTiming{chaosBegan: s.Clock.Now(), workloadDone: worked, converged: s.convergedAfterWorkload(ctx, worked)}
	var group errgroup.Group
	for i, spec := range s.Scenario.Faults {
		// Before the workload begins, so that no moment passes unseen.
		first := s.dispatcher.subscribe(spec.When, s.proxy.Controller, false)
		group.Go(func() error { return s.runFault(ctx, i, first, t) })
	}
	group.Go(func() error {
		defer close(worked)
		err := workload.Run(ctx, workload.Env{
			Client:    s.admin,
			Namespace: namespace,
			Pods:      s.pods,
			Recorder:  s.dispatcher,
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

// faultTiming are those that faults go by.
type faultTiming struct {
	chaosBegan   time.Time       // when the workload began
	workloadDone <-chan struct{} // closed when it has ended
	converged    <-chan struct{} // closed when the subject has nothing left to do after that
}

// convergedAfterWorkload returns what is closed when the workload has ended and the subject has
// converged and is quiet, or has had its time for that. No moment comes of its
// doing after that.
func (s *testEnvironment) convergedAfterWorkload(ctx context.Context, worked <-chan struct{}) <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		select {
		case <-worked:
		case <-ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(ctx, s.Scenario.Settle.Within)
		defer cancel()
		for s.monitor.waitConverged(ctx) && !s.monitor.waitQuiet(ctx, s.Clock, s.Scenario.Settle.Quiet) {
		}
	}()
	return idle
}

// runFault has one fault act, as often as its moment comes and it may, when for the
// first time.
func (s *testEnvironment) runFault(ctx context.Context, index int, when *subscription, t faultTiming) error {
	spec, random := s.Scenario.Faults[index], s.faultRandom(index)
	for round := range max(spec.Times, 1) {
		if round > 0 {
			when = s.dispatcher.subscribe(spec.When, s.proxy.Controller, true)
		}
		report := faults.NewReporter(s.dispatcher, index, spec.Name)
		if slices.ContainsFunc(s.Scenario.Faults, isOutage) {
			report.TolerateOutage()
		}
		cause, came := s.awaitStart(ctx, spec, when, t)
		var err error
		switch {
		case came:
			err = s.applyFault(ctx, spec, when, t, &faults.Env{
				Rand:      random,
				Proxy:     s.proxy,
				Subject:   s.subject,
				Cluster:   s.cluster,
				Admin:     s.admin,
				Provider:  s.Provider,
				Namespace: namespace,
				Pods:      s.pods,
				Trigger:   cause,
				Clock:     s.Clock,
				Report:    report,
			})
		case round > 0 || ctx.Err() != nil:
		case spec.When != nil:
			report.Failed(nil, fmt.Errorf("its moment never came: %s", spec.When))
		default:
			report.Failed(nil, fmt.Errorf("the workload ended before the fault began, at %s", spec.From))
		}
		s.dispatcher.unsubscribe(when)
		if !came || err != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

// awaitStart waits for a fault's time, and reports whether it came.
func (s *testEnvironment) awaitStart(ctx context.Context, spec scenario.Fault, when *subscription, t faultTiming) (trigger.Match, bool) {
	if spec.When == nil {
		over := t.workloadDone // whatever lasts as long as the workload does not begin after it
		if spec.For > 0 {
			over = nil
		}
		return trigger.Match{}, s.sleep(ctx, spec.From-s.Clock.Since(t.chaosBegan), over)
	}
	select {
	case cause := <-when.matched:
		if spec.From == 0 {
			return cause, true // what it has kept waits until the fault is in force
		}
		s.dispatcher.unsubscribe(when)
		return cause, s.sleep(ctx, spec.From, nil)
	case <-t.converged:
	case <-ctx.Done():
	}
	return trigger.Match{}, false
}

// applyFault takes a fault through its life: inject, wait, heal, see that the control
// plane is healthy again. Whatever ends the run, the fault is healed.
//
// The control plane was healthy before the workload began, and after each fault that
// was healed. It is not asked once more: an answer may take seconds, and a moment is
// over by then. Only the outage that another fault makes has to pass.
func (s *testEnvironment) applyFault(ctx context.Context, spec scenario.Fault, when *subscription, t faultTiming, env *faults.Env) (err error) {
	fault, err := newFault(spec)
	if err != nil {
		return err
	}
	var own int32
	if isOutage(spec) {
		own = 1
	}
	others := s.outages.Add(own) - own
	defer s.outages.Add(-own)
	if others > 0 {
		if err := s.cluster.Health(ctx); err != nil {
			return fmt.Errorf("before %s: %w", env.Report, err)
		}
	}
	until := s.dispatcher.subscribe(spec.Until, s.proxy.Controller, false)
	defer s.dispatcher.unsubscribe(until)
	defer func() { err = errors.Join(err, s.heal(ctx, fault, env)) }()
	if err := faults.Inject(ctx, fault, env); err != nil {
		return err
	}
	s.dispatcher.unsubscribe(when)
	worked, over := t.workloadDone, (<-chan time.Time)(nil)
	if spec.For > 0 {
		timer := s.Clock.NewTimer(spec.For)
		defer timer.Stop()
		worked, over = nil, timer.C()
	}
	select {
	case <-worked:
	case <-over:
	case <-until.matched:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// isOutage reports whether a fault puts the control plane out of order.
func isOutage(spec scenario.Fault) bool {
	kind, err := catalog.Find(spec.Name)
	return err == nil && kind.Outage
}

// newFault makes the fault that a scenario asks for. Its error says where the
// scenario is wrong.
func newFault(spec scenario.Fault) (faults.Fault, error) {
	kind, err := catalog.Find(spec.Name)
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
		kind, err := catalog.Find(spec.Name)
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
		if picky, ok := fault.(faults.ProviderLimited); ok {
			if err := picky.UnsupportedOn(provider); err != nil {
				return spec.Errorf("cannot happen on %s: %w", provider, err)
			}
		}
	}
	return nil
}

const (
	// healTimeout bounds the healing of a fault and what follows until the control
	// plane is healthy again: parts of it may have to start first.
	healTimeout = 4 * time.Minute
	// abortedHealTimeout bounds the healing once the run has broken off: the control
	// plane may be what broke.
	abortedHealTimeout = 3 * time.Second
)

// heal ends a fault, however the run ended, and sees that the control plane is
// healthy again.
func (s *testEnvironment) heal(ctx context.Context, fault faults.Fault, env *faults.Env) error {
	within := healTimeout
	if ctx.Err() != nil { // there may be nothing left to be healed
		within = abortedHealTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	err := faults.Heal(ctx, fault, env)
	if err != nil && s.cluster.Health(ctx) == nil {
		// Another fault may have had the API server down.
		err = faults.Heal(ctx, fault, env)
	}
	if err != nil {
		return err
	}
	if err := s.cluster.Health(ctx); err != nil {
		return fmt.Errorf("after %s: %w", env.Report, err)
	}
	return nil
}

// sleep waits, and reports whether neither ctx nor early ended before the time was over.
func (s *testEnvironment) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
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

// faultRandom is the fault's own source of draws: a fault that is added, removed or
// fires at another time does not change what the others draw.
func (s *testEnvironment) faultRandom(index int) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s", index, s.Scenario.Faults[index].Name)
	return rand.New(rand.NewPCG(s.Scenario.Seed, hash.Sum64()))
}
