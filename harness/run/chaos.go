package run

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// Chaos runs the workload and all faults of the scenario at the same time. It begins the chaos
// phase of the run, and returns when the workload has ended and every fault is healed.
//
// The argument run is the workload. If it is nil, Chaos executes the workload steps of the
// scenario. An error of the workload aborts the run.
func (s *Session) Chaos(ctx context.Context, run Workload) error {
	described := "a workload of this program"
	if external := s.Scenario.ExternalWorkload != nil; run == nil && external {
		return s.Scenario.Errorf("externalWorkload", "found no workload: pass a function to Session.Chaos, because the workload is not in the scenario")
	}
	if run == nil {
		run, described = runSteps, faults.Counted(len(s.Scenario.Workload), "workload step")
	}
	if err := s.Begin(ctx); err != nil {
		return err
	}
	s.progress("chaos: %s, %s", described, faults.Counted(len(s.Scenario.Faults), "fault"))
	ctx, cancel := context.WithCancel(ctx)
	end := newFaultEnd()
	t := faultTiming{chaosBegan: s.Clock.Now(), end: end.begun, converged: s.convergedAfterFaults(ctx, end.begun)}
	defer func() {
		cancel()
		<-t.converged // after this channel is closed, no goroutine uses the environment any more
	}()
	var group errgroup.Group
	var active sync.WaitGroup
	active.Add(len(s.Scenario.Faults))
	for i, spec := range s.Scenario.Faults {
		// Subscribe before the workload begins, so that the trigger sees every record.
		first := s.Environment.Dispatcher.Subscribe(spec.When, s.Environment.Interceptor.Controller, false)
		group.Go(func() error {
			defer active.Done()
			return s.runFault(ctx, i, first, t)
		})
	}
	s.faultEnd = end
	group.Go(func() error {
		defer end.begin()
		return run(ctx, s)
	})
	active.Wait()
	close(end.healed)
	return group.Wait()
}

// faultEnd is the end of the faults that last as long as the workload. It begins when the workload
// ends, or when a step of the workload is late.
type faultEnd struct {
	begin  func()          // begins the end; later calls have no effect
	begun  <-chan struct{} // closed when the end has begun
	healed chan struct{}   // closed when all faults are healed
}

func newFaultEnd() *faultEnd {
	begun := make(chan struct{})
	return &faultEnd{begin: sync.OnceFunc(func() { close(begun) }), begun: begun, healed: make(chan struct{})}
}

// watchesWithin limits the time until the subject's watches are open again after a fault. It is the
// longest time that client-go waits before it lists again, after many watches that ended early.
const watchesWithin = time.Minute

// healAndWait is called when a step of the workload is late. It ends the faults, and waits until the
// subject's watches are open. It returns when the time settle.within of the scenario has passed since
// then, or when ctx ends because the step is done.
func (s *Session) healAndWait(ctx context.Context) {
	s.progress("a step of the workload is late: ending the faults, then waiting up to %s", s.Scenario.Settle.Within)
	s.faultEnd.begin()
	select {
	case <-s.faultEnd.healed:
	case <-ctx.Done():
		return
	}
	opening, cancel := s.monitor.within(ctx, watchesWithin)
	s.monitor.waitUntil(opening, s.monitor.watching)
	cancel()
	bounded, cancel := s.monitor.within(ctx, s.Scenario.Settle.Within)
	defer cancel()
	<-bounded.Done()
}

// waitSubjectQuiet waits until the subject has written nothing for the time settle.quiet. In this time,
// its watches must be open, and no fault may hold a message. It returns early if ctx ends.
func (s *Session) waitSubjectQuiet(ctx context.Context) {
	s.monitor.waitStill(ctx, s.Clock, s.Scenario.Settle.Quiet, func() bool { return s.Environment.Interceptor.Held() > 0 })
}

// runSteps executes the workload steps of the scenario. A step may await a condition that is not met in
// time, not even after the faults are healed. In this case runSteps ends the workload without an error.
// The checks decide whether that is a violation.
func runSteps(ctx context.Context, s *Session) error {
	err := workload.Run(ctx, workload.Env{
		Client:    s.Environment.Admin,
		Dynamic:   s.Environment.Dynamic,
		Kinds:     s.Scenario.GenericKinds(),
		Namespace: s.Environment.RecordedNamespace(),
		Pods:      s.Environment.Pods,
		Recorder:  s.Environment.Dispatcher,
		Clock:     s.Clock,
		Late:      s.healAndWait,
		Quiet:     s.waitSubjectQuiet,
	}, s.Scenario.Workload)
	if errors.Is(err, workload.ErrUnmet) {
		s.unmet = err
		s.progress("%v", err)
		return nil
	}
	return err
}

// faultTiming contains the times that decide when faults begin and end. These are the start of the
// chaos phase, the end of the faults, and the time after which no trigger begins a fault.
type faultTiming struct {
	chaosBegan time.Time       // the time at which the chaos phase began
	end        <-chan struct{} // closed when faults that last as long as the workload must end; see faultEnd
	converged  <-chan struct{} // closed when faults no longer wait for their triggers; see convergedAfterFaults
}

// convergedAfterFaults returns a channel that is closed when faults must stop waiting for their
// triggers. The channel is closed as soon as the following is true:
//
//   - The end of the faults has begun; see faultEnd.
//   - All objects have converged.
//   - The controllers under test have then written nothing for the time settle.quiet.
//
// The channel is closed in any case when the time settle.within has passed since then, or when ctx
// ends. The scenario contains settle.quiet and settle.within.
func (s *Session) convergedAfterFaults(ctx context.Context, faultsEnd <-chan struct{}) <-chan struct{} {
	converged := make(chan struct{})
	go func() {
		defer close(converged)
		select {
		case <-faultsEnd:
		case <-ctx.Done():
			return
		}
		ctx, cancel := s.monitor.within(ctx, s.Scenario.Settle.Within)
		defer cancel()
		for ctx.Err() == nil && s.monitor.waitConverged(ctx) && !s.monitor.waitQuiet(ctx, s.Clock, s.Scenario.Settle.Quiet) {
		}
	}()
	return converged
}

// runFault injects and heals the fault with the given index in the scenario's list of faults. It
// does so each time the fault's trigger matches. The field Times of the fault is the maximum
// number of injections; 0 means 1.
//
// The argument when is the subscription to the trigger for the first injection. runFault
// subscribes again for each further injection. If the fault never starts, runFault records that
// the fault failed, and returns nil.
func (s *Session) runFault(ctx context.Context, index int, when *environment.Subscription, t faultTiming) error {
	spec, random := s.Scenario.Faults[index], s.faultRandom(index)
	for round := range max(spec.Times, 1) {
		if round > 0 {
			when = s.Environment.Dispatcher.Subscribe(spec.When, s.Environment.Interceptor.Controller, true)
		}
		report := faults.NewReporter(s.Environment.Dispatcher, index, spec.Name)
		if slices.ContainsFunc(s.Scenario.Faults, isOutage) {
			report.TolerateOutage()
		}
		match, started := s.awaitStart(ctx, spec, when, t)
		var err error
		switch {
		case started:
			env := s.Environment.FaultEnv(random, report)
			env.Trigger, env.Kinds = match, s.Scenario.GenericKinds()
			err = s.applyFault(ctx, spec, when, t, env)
		case round > 0 || ctx.Err() != nil:
		case spec.When != nil:
			report.Failed(nil, fmt.Errorf("the trigger did not match before the workload ended, or before one of its steps was late: %s", spec.When))
		default:
			report.Failed(nil, fmt.Errorf("the workload ended, or one of its steps was late, after less than %s, so the fault did not start; expected a longer workload, or a smaller value in the fault's field \"from\"", spec.From))
		}
		s.Environment.Dispatcher.Unsubscribe(when)
		if !started || err != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

// awaitStart waits for the start time or the trigger of a fault. It returns the match of the
// trigger, and true if the fault must start. It returns false in these cases:
//
//   - The fault has no trigger and no duration (the field `for`), and the end of the faults begins
//     before the start time. Such a fault would end at once.
//   - The channel t.converged is closed before the trigger matches; see convergedAfterFaults.
//   - ctx ends.
func (s *Session) awaitStart(ctx context.Context, spec scenario.Fault, when *environment.Subscription, t faultTiming) (trigger.Match, bool) {
	if spec.When == nil {
		over := t.end // a fault without `for` ends then, so it must not begin later
		if spec.For > 0 {
			over = nil
		}
		return trigger.Match{}, s.sleep(ctx, spec.From-s.Clock.Since(t.chaosBegan), over)
	}
	select {
	case match := <-when.Matched():
		if spec.From == 0 {
			return match, true // the matched request or event waits until applyFault has injected the fault and calls Unsubscribe
		}
		s.Environment.Dispatcher.Unsubscribe(when)
		return match, s.sleep(ctx, spec.From, nil)
	case <-t.converged:
	case <-ctx.Done():
	}
	return trigger.Match{}, false
}

// applyFault injects a fault, waits until the fault must end, and heals the fault. It returns when
// the control plane is healthy again. If the run is aborted, applyFault heals the fault too.
//
// A fault must begin as soon as its trigger matches, and a health check can take seconds.
// applyFault therefore normally injects the fault without a health check of the control plane. But
// if another active fault makes the control plane unavailable, applyFault first waits until the
// control plane is healthy.
func (s *Session) applyFault(ctx context.Context, spec scenario.Fault, when *environment.Subscription, t faultTiming, env *faults.Env) (err error) {
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
		if err := s.Environment.Cluster.Health(ctx); err != nil {
			return fmt.Errorf("checking the health of the control plane before the injection of %s: %w", env.Report, err)
		}
	}
	until := s.Environment.Dispatcher.Subscribe(spec.Until, s.Environment.Interceptor.Controller, false)
	defer s.Environment.Dispatcher.Unsubscribe(until)
	defer func() { err = errors.Join(err, s.heal(ctx, fault, env)) }()
	if err := faults.Inject(ctx, fault, env); err != nil {
		return err
	}
	s.Environment.Dispatcher.Unsubscribe(when)
	end, over := t.end, (<-chan time.Time)(nil)
	if spec.For > 0 {
		timer := s.Clock.NewTimer(spec.For)
		defer timer.Stop()
		end, over = nil, timer.C()
	}
	select {
	case <-end:
	case <-over:
	case <-until.Matched():
	case <-ctx.Done():
	}
	return ctx.Err()
}

// isOutage reports whether a fault makes the control plane unavailable, such as a restart of etcd.
// While such a fault is active, the run injects no other fault before the control plane is
// healthy.
func isOutage(spec scenario.Fault) bool {
	kind, err := catalog.Find(spec.Name)
	return err == nil && kind.Outage
}

// newFault returns the fault that the argument spec describes, which is an element of the
// scenario's list of faults. It does not inject the fault. It returns an error, with the position
// in the scenario file, if the type of the fault is unknown or a parameter is invalid.
func newFault(spec scenario.Fault) (faults.Fault, error) {
	kind, err := catalog.Find(spec.Name)
	if err != nil {
		return nil, spec.Errorf("%w", err)
	}
	return kind.Create(spec.Params)
}

const (
	// healTimeout limits the time to heal a fault, including the wait for a healthy control plane.
	// The timeout is long, because components may have to restart first.
	healTimeout = 4 * time.Minute
	// abortedHealTimeout is the rest of the time for a heal after the run was aborted. The timeout is short, because
	// the control plane may have failed.
	abortedHealTimeout = 3 * time.Second
)

// heal heals a fault and waits until the control plane is healthy, even if ctx is canceled.
func (s *Session) heal(ctx context.Context, fault faults.Fault, env *faults.Env) error {
	aborted := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healTimeout)
	defer cancel()
	defer context.AfterFunc(aborted, func() { time.AfterFunc(abortedHealTimeout, cancel) })()
	err := faults.Heal(ctx, fault, env)
	if err != nil && s.Environment.Cluster.Health(ctx) == nil {
		// The first attempt may have failed because another fault had stopped the API server.
		err = faults.Heal(ctx, fault, env)
	}
	if err != nil {
		return err
	}
	if err := s.Environment.Cluster.Health(ctx); err != nil {
		return fmt.Errorf("checking the health of the control plane after the end of %s: %w", env.Report, err)
	}
	return nil
}

// sleep waits for the duration d and returns true. It returns false as soon as ctx ends or the
// channel early is closed. If early is nil, only ctx can end the wait.
func (s *Session) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
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

// faultRandom returns the source of random numbers for one fault. The argument index is the
// position of the fault in the scenario's list of faults.
//
// The numbers depend only on the seed, the index and the fault's name. A change of one fault
// therefore does not change the random numbers of other faults.
func (s *Session) faultRandom(index int) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s", index, s.Scenario.Faults[index].Name)
	return rand.New(rand.NewPCG(s.Scenario.Seed, hash.Sum64()))
}
