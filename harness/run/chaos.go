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
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// counted returns a number with its noun, in the plural unless the number is 1.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// runChaos runs the workload and all faults concurrently. It returns when the workload
// has ended and every fault is healed.
func (e *testEnvironment) runChaos(ctx context.Context) error {
	if err := e.cluster.Health(ctx); err != nil {
		return fmt.Errorf("health check before the workload: %w", err)
	}
	e.beginPhase(history.PhaseChaos)
	e.progress("chaos: %s, %s", counted(len(e.Scenario.Workload), "workload step"), counted(len(e.Scenario.Faults), "fault"))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workloadDone := make(chan struct{}) // closed when the workload has ended
	t := faultTiming{chaosBegan: e.Clock.Now(), workloadDone: workloadDone, converged: e.convergedAfterWorkload(ctx, workloadDone)}
	var group errgroup.Group
	for i, spec := range e.Scenario.Faults {
		// Subscribe before the workload begins, so that no record is missed.
		first := e.dispatcher.subscribe(spec.When, e.proxy.Controller, false)
		group.Go(func() error { return e.runFault(ctx, i, first, t) })
	}
	group.Go(func() error {
		defer close(workloadDone)
		err := workload.Run(ctx, workload.Env{
			Client:    e.admin,
			Namespace: namespace,
			Pods:      e.pods,
			Recorder:  e.dispatcher,
			Clock:     e.Clock,
		}, e.Scenario.Workload)
		if errors.Is(err, workload.ErrUnmet) {
			e.progress("%v", err)
			return nil // the checks decide
		}
		return err
	})
	return group.Wait()
}

// faultTiming contains the events of a run that start and end faults.
type faultTiming struct {
	chaosBegan   time.Time       // beginning of the chaos phase
	workloadDone <-chan struct{} // closed when the workload has ended
	converged    <-chan struct{} // closed when the subject has converged and is quiet after the workload
}

// convergedAfterWorkload returns a channel that is closed when the subject has converged and
// is quiet after the workload. The channel is also closed when settle.within has passed
// since the workload ended. Faults then stop waiting for their triggers.
func (e *testEnvironment) convergedAfterWorkload(ctx context.Context, workloadDone <-chan struct{}) <-chan struct{} {
	converged := make(chan struct{})
	go func() {
		defer close(converged)
		select {
		case <-workloadDone:
		case <-ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(ctx, e.Scenario.Settle.Within)
		defer cancel()
		for e.monitor.waitConverged(ctx) && !e.monitor.waitQuiet(ctx, e.Clock, e.Scenario.Settle.Quiet) {
		}
	}()
	return converged
}

// runFault applies a fault each time that its trigger matches, at most spec.Times
// times. The caller has already subscribed to the trigger for the first application.
func (e *testEnvironment) runFault(ctx context.Context, index int, when *subscription, t faultTiming) error {
	spec, random := e.Scenario.Faults[index], e.faultRandom(index)
	for round := range max(spec.Times, 1) {
		if round > 0 {
			when = e.dispatcher.subscribe(spec.When, e.proxy.Controller, true)
		}
		report := faults.NewReporter(e.dispatcher, index, spec.Name)
		if slices.ContainsFunc(e.Scenario.Faults, isOutage) {
			report.TolerateOutage()
		}
		match, started := e.awaitStart(ctx, spec, when, t)
		var err error
		switch {
		case started:
			err = e.applyFault(ctx, spec, when, t, &faults.Env{
				Rand:         random,
				Proxy:        e.proxy,
				Subject:      e.subject,
				Cluster:      e.cluster,
				Admin:        e.admin,
				Capabilities: e.cluster.Capabilities(),
				Namespace:    namespace,
				Pods:         e.pods,
				Trigger:      match,
				Clock:        e.Clock,
				Report:       report,
			})
		case round > 0 || ctx.Err() != nil:
		case spec.When != nil:
			report.Failed(nil, fmt.Errorf("the trigger never matched: %s", spec.When))
		default:
			report.Failed(nil, fmt.Errorf("the workload ended before the start time of the fault, %s", spec.From))
		}
		e.dispatcher.unsubscribe(when)
		if !started || err != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

// awaitStart waits for the start time or the trigger of a fault. It returns false if
// the fault must not start.
func (e *testEnvironment) awaitStart(ctx context.Context, spec scenario.Fault, when *subscription, t faultTiming) (trigger.Match, bool) {
	if spec.When == nil {
		over := t.workloadDone // a fault without `for` lasts until the workload ends, so it cannot begin later
		if spec.For > 0 {
			over = nil
		}
		return trigger.Match{}, e.sleep(ctx, spec.From-e.Clock.Since(t.chaosBegan), over)
	}
	select {
	case match := <-when.matched:
		if spec.From == 0 {
			return match, true // held records wait until the fault is injected
		}
		e.dispatcher.unsubscribe(when)
		return match, e.sleep(ctx, spec.From, nil)
	case <-t.converged:
	case <-ctx.Done():
	}
	return trigger.Match{}, false
}

// applyFault injects a fault, waits until its end, heals it, and waits until the
// control plane is healthy. The fault is healed even if the run is aborted.
//
// There is no health check before the fault. The control plane was healthy before the
// workload and after each healed fault. A check can take seconds, and the fault must
// act as soon as its trigger matches. applyFault waits only until an outage that
// another fault caused has ended.
func (e *testEnvironment) applyFault(ctx context.Context, spec scenario.Fault, when *subscription, t faultTiming, env *faults.Env) (err error) {
	fault, err := newFault(spec)
	if err != nil {
		return err
	}
	var own int32
	if isOutage(spec) {
		own = 1
	}
	others := e.outages.Add(own) - own
	defer e.outages.Add(-own)
	if others > 0 {
		if err := e.cluster.Health(ctx); err != nil {
			return fmt.Errorf("health check before %s: %w", env.Report, err)
		}
	}
	until := e.dispatcher.subscribe(spec.Until, e.proxy.Controller, false)
	defer e.dispatcher.unsubscribe(until)
	defer func() { err = errors.Join(err, e.heal(ctx, fault, env)) }()
	if err := faults.Inject(ctx, fault, env); err != nil {
		return err
	}
	e.dispatcher.unsubscribe(when)
	workloadDone, over := t.workloadDone, (<-chan time.Time)(nil)
	if spec.For > 0 {
		timer := e.Clock.NewTimer(spec.For)
		defer timer.Stop()
		workloadDone, over = nil, timer.C()
	}
	select {
	case <-workloadDone:
	case <-over:
	case <-until.matched:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// isOutage reports whether a fault makes the control plane unavailable, so that other
// faults must wait for its end.
func isOutage(spec scenario.Fault) bool {
	kind, err := catalog.Find(spec.Name)
	return err == nil && kind.Outage
}

// newFault creates a fault from its specification. The error contains the position in
// the scenario.
func newFault(spec scenario.Fault) (faults.Fault, error) {
	kind, err := catalog.Find(spec.Name)
	if err != nil {
		return nil, spec.Errorf("%w", err)
	}
	return kind.New(spec.Params)
}

// Supported reports whether a scenario can run on a provider: it has room for all pods
// and supports every fault. The error contains the position in the scenario.
func Supported(s *scenario.Scenario, provider string) error {
	p, err := providers.Named(provider)
	if err != nil {
		return err
	}
	if p.PodsPerNode > 0 {
		if pods, room := s.PodsMax(), p.PodsPerNode*s.Cluster.Nodes; pods > room {
			return s.Errorf("cluster.nodes", "the workload needs %d pods at the same time, but %d nodes of provider %s hold %d; add nodes or remove pods",
				pods, s.Cluster.Nodes, provider, room)
		}
	}
	for _, spec := range s.Faults {
		kind, err := catalog.Find(spec.Name)
		if err != nil {
			return spec.Errorf("%w", err)
		}
		if !p.Capabilities.Has(kind.Needs...) {
			return spec.Errorf("not supported by provider %s; expected --provider=%s", provider, strings.Join(providers.With(kind.Needs...), " or "))
		}
		fault, err := kind.New(spec.Params)
		if err != nil {
			return err
		}
		if limited, ok := fault.(faults.ProviderLimited); ok {
			if err := limited.Unsupported(p.Capabilities); err != nil {
				return spec.Errorf("not supported by provider %s: %w%s", provider, err, providers.Alternatives(err))
			}
		}
	}
	return nil
}

const (
	// healTimeout bounds the healing of a fault and the wait for a healthy control
	// plane. It is long, because components may have to restart first.
	healTimeout = 4 * time.Minute
	// abortedHealTimeout bounds the healing after the run is aborted, when the control
	// plane itself may have failed.
	abortedHealTimeout = 3 * time.Second
)

// heal heals a fault and waits until the control plane is healthy. It also works after
// ctx is canceled.
func (e *testEnvironment) heal(ctx context.Context, fault faults.Fault, env *faults.Env) error {
	within := healTimeout
	if ctx.Err() != nil { // the target of the fault may not exist any more
		within = abortedHealTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	err := faults.Heal(ctx, fault, env)
	if err != nil && e.cluster.Health(ctx) == nil {
		// The first attempt may have failed because another fault stopped the API
		// server.
		err = faults.Heal(ctx, fault, env)
	}
	if err != nil {
		return err
	}
	if err := e.cluster.Health(ctx); err != nil {
		return fmt.Errorf("health check after %s: %w", env.Report, err)
	}
	return nil
}

// sleep waits for d. It returns false if ctx ends or early is closed first.
func (e *testEnvironment) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := e.Clock.NewTimer(max(d, 0))
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

// faultRandom returns the random source of a fault. It depends only on the seed, the
// index and the type of the fault, so that a change of other faults does not change its
// random numbers.
func (e *testEnvironment) faultRandom(index int) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s", index, e.Scenario.Faults[index].Name)
	return rand.New(rand.NewPCG(e.Scenario.Seed, hash.Sum64()))
}
