// Package explore searches systematically for places in a run at which a controller does not
// survive a fault. [Run] has these steps:
//
//	baseline  run the workload without faults, several times
//	learn     read from the histories which writes and watch events the subject had, and which
//	          related objects had been delivered before each write
//	check     run the workload again, with a restart at its end, and compare it with the earlier runs
//	plan      list the places for faults, and prune those that cannot matter
//	try       run the workload again, once for each place, with the faults of this place
//	pairs     combine two places, as long as the budget lasts
//
// A [Place] is a write or a watch event of the controllers under test (the subject). It has an
// [Action] that says what goes wrong there. The [Plan] and the results so far are in a directory,
// so that an interrupted search can continue.
//
// The package does not know how a run is made. [Options.Start] makes a run.
package explore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Options says at which writes and watch events a search injects faults, with which faults, and for
// how long. Such a write or watch event is called a place.
type Options struct {
	// Scenario has the workload. The search ignores the scenario's faults.
	Scenario *scenario.Scenario
	// Subject identifies the controllers under test. If Directory has a plan for another subject,
	// [Run] returns an error.
	Subject string
	// Provider is the provider of the control plane. If Directory has a plan for another provider,
	// [Run] returns an error.
	Provider string
	// Actions has the kinds of faults that the search injects, such as a crash. The search takes one
	// place of each kind in turn, in this order.
	Actions []Action
	// Delay is how long an event or a response is late; see [DefaultDelay].
	Delay time.Duration
	// Directory contains the plan and the results of the search. If an interrupted search of the
	// same scenario has left a plan there, the search continues.
	Directory string
	// Baseline is the number of runs without faults that the search makes first. It is at least 1.
	Baseline int
	// Parallel is the maximum number of runs at the same time.
	Parallel *campaign.Limit
	// Budget is the time from the call of Run after which the search starts no further trial. With
	// 0, the search ends after the last pair of places.
	Budget time.Duration
	Clock  clock.PassiveClock
	// Start runs the scenario s once, and creates the run directory in out. It returns the report
	// of the run, or nil and an error if the run could not start. It returns both if the run was
	// aborted. It calls onRecord with each record of the run's history. The checks compare the run
	// with the baseline b, unless b is nil.
	Start func(ctx context.Context, s *scenario.Scenario, b *baseline.Baseline, out string, onRecord func(*history.Record)) (*reports.Run, error)
	// Progress receives messages about the progress of the search.
	Progress func(message string)
}

// Run injects a fault at every place, and then two faults at every pair of places. A place is a
// write or a watch event of the controllers under test. Run ends early if the budget is used up or
// if ctx ends. The end of ctx is not an error.
//
// Run returns the results as an [Outcome]. The outcome is nil if there is no plan: Run cannot use
// o.Directory, or the runs without faults were not completed. Otherwise the outcome is valid, even
// with an error. An error about a file in o.Directory is a [StateError].
func Run(ctx context.Context, o Options) (*Outcome, error) {
	s, err := open(o)
	if err != nil {
		return nil, &StateError{err}
	}
	defer s.close()
	if s.plan == nil {
		if err := s.learn(ctx); err != nil || ctx.Err() != nil {
			return nil, err
		}
	}
	o.Progress(s.plan.String())
	err = s.try(ctx, singles(s.plan.Places))
	if err == nil && s.goesOn(ctx) {
		s.pairs = newPairPlan(s.plan.Places, s.results)
		tried := "every place (write or watch event) was tried alone"
		if s.failedStarts > 0 {
			tried += fmt.Sprintf("; places without a result: %d, because their runs ended before the fault", s.failedStarts)
		}
		o.Progress(tried + "\n" + s.pairs.String())
		err = s.try(ctx, s.pairs.trials)
	}
	return s.outcome(), err
}

// goesOn reports whether the search may start another run. It returns false after ctx has ended or
// the time budget is used up.
func (s *search) goesOn(ctx context.Context) bool {
	return ctx.Err() == nil && (s.Budget == 0 || s.Clock.Since(s.began) < s.Budget)
}

// learn makes the runs without faults, and plans the search from the histories of these runs. Each run
// has a seed of its own, so that the runs differ in what depends on random choices. A further run
// checks the baseline; see checkBaseline. learn sets s.plan and s.baseline, and writes plan.json. If ctx
// ends first, s.plan stays nil. A failed workload step in one of these runs is an error.
func (s *search) learn(ctx context.Context) error {
	if err := s.removeRunsWithoutFaults(); err != nil { // of a search that was killed before it saved a plan
		return err
	}
	var attempts []campaign.Attempt
	for n := range s.Baseline {
		attempts = append(attempts, func(ctx context.Context) (*reports.Run, error) {
			s.Progress(fmt.Sprintf("run without faults, %d of %d", n+1, s.Baseline))
			calm := s.calm.Clone()
			calm.Seed += uint64(n)
			return s.Start(ctx, calm, nil, s.baselineDirectory(), func(*history.Record) {})
		})
	}
	var lessons []*Lesson
	var runs []reports.Run
	err := campaign.RunParallel(ctx, s.Parallel, series(attempts, func() bool { return true }), func(_ int, run *reports.Run, err error) error {
		if run == nil || err != nil || ctx.Err() != nil {
			return err
		}
		lesson, err := lessonOf(run)
		if err == nil && lesson.Observer.FailedStep != "" {
			err = fmt.Errorf("a step failed in the run without faults: %s; the workload must complete without faults; see %s", lesson.Observer.FailedStep, run.Directory)
		}
		if late := lesson.LateStep(); err == nil && late != "" && !slices.ContainsFunc(lessons, func(l *Lesson) bool { return l.LateStep() == late }) {
			s.Progress(fmt.Sprintf("%s was late in a run without faults, and a late step ends the faults; raise the field `within` of its await; see %s", late, run.Directory))
		}
		lessons, runs = append(lessons, lesson), append(runs, *run)
		return err
	})
	if err == nil && ctx.Err() == nil {
		s.plan, s.baseline = NewPlan(s.calm.Resources(), s.Actions, lessons), runs
		err = s.checkBaseline(ctx, lessons)
	}
	if err != nil || ctx.Err() != nil {
		s.plan = nil
		return errors.Join(err, s.removeRunsWithoutFaults())
	}
	return s.save()
}

// removeRunsWithoutFaults removes the directories of the runs without faults.
func (s *search) removeRunsWithoutFaults() error {
	return errors.Join(os.RemoveAll(s.baselineDirectory()), os.RemoveAll(s.stabilityDirectory()))
}

// try makes one run for each of the given trials that has no result yet. A trial is a run with a
// fault at one place, or with faults at two places. try stores each result in s.results and in
// results.jsonl. If ctx ends or the time budget is used up, try returns nil early. It returns an
// error if too many consecutive runs could not start, or if a result cannot be stored.
func (s *search) try(ctx context.Context, trials []trial) error {
	left := slices.DeleteFunc(slices.Clone(trials), func(t trial) bool { _, tried := s.results[t.id()]; return tried })
	var attempts []campaign.Attempt
	for _, t := range left {
		attempts = append(attempts, func(ctx context.Context) (*reports.Run, error) { return nil, s.tryOne(ctx, t) })
	}
	s.ahead = len(left)
	consecutive := 0
	return campaign.RunParallel(ctx, s.Parallel, series(attempts, func() bool { return s.goesOn(ctx) }), func(_ int, _ *reports.Run, err error) error {
		switch {
		case err == nil || ctx.Err() != nil:
			consecutive = 0
		case errors.Is(err, errNotStarted):
			s.failedStarts++
			if consecutive++; consecutive < failedStartsMax {
				s.Progress(err.Error())
				return nil // try the next run, because the reason may be temporary
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}

// errNotStarted means that a run has no result because it ended with an error before a fault fired.
var errNotStarted = errors.New("the run ended before its fault")

// failedStartsMax is the number of consecutive failed starts after which the search ends with an
// error. After fewer failed starts, the search continues, because the reason may be temporary.
const failedStartsMax = 3

// tryOne makes the run of a trial and stores the result. A trial injects the faults of one or
// two places. tryOne removes the directory of a run that was interrupted or shows no failure.
func (s *search) tryOne(ctx context.Context, t trial) error {
	disturbed, err := t.scenario(s.calm, s.Delay)
	if err != nil {
		return err
	}
	if err := s.checkDirectory(); err != nil {
		return err
	}
	out, err := s.runDirectory(t)
	if err != nil {
		return err
	}
	expected := s.expected()
	expected.Scenario = disturbed.Name // otherwise, the run's reproduce command refuses the baseline
	seen := newRunObserver()
	begun := s.Clock.Now()
	run, err := s.Start(ctx, disturbed, &expected, out, seen.observe)
	if removed := s.checkDirectory(); removed != nil {
		return errors.Join(removed, os.RemoveAll(out))
	}
	// A run may have been aborted before its fault, for example because the subject did not start.
	aborted := run == nil || err != nil && len(seen.fired) == 0 && run.Verdict != check.Fail
	if aborted || ctx.Err() != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %s: %w", errNotStarted, t, err)
		}
		return errors.Join(err, os.RemoveAll(out))
	}
	result := s.check(t, run, seen)
	if len(seen.fired) == 0 && seen.failedStep == "" && onlyDiffers(result.run) {
		if err := s.include(run); err != nil {
			return err
		}
		result.Verdict = check.Pass
	}
	if result.Verdict == check.Fail && result.Fired && onlyDiffers(result.run) && seen.next >= 0 {
		if err := s.withPatience(ctx, t, &result, patient(disturbed, seen.next), &expected, out); err != nil {
			return err
		}
		if ctx.Err() != nil { // a continued search makes all these runs again
			return os.RemoveAll(out)
		}
	}
	result.Seconds = s.Clock.Since(begun).Seconds()
	if !result.kept() {
		if err := os.RemoveAll(out); err != nil {
			return fmt.Errorf("removing the directory of a run: %w", err)
		}
	}
	return s.note(t, result)
}

// expected returns a copy of the baseline, which runs in parallel may replace.
func (s *search) expected() baseline.Baseline {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.plan.Baseline
}

// check returns the result of a trial (a run with faults), which it determines from the run's
// report. The argument seen says which faults fired and which step failed. check ignores failures
// that the runs without faults show too. If only a step of the workload failed, the verdict is
// unknown.
func (s *search) check(t trial, run *reports.Run, seen *runObserver) result {
	own := run.WithoutFailuresOf(s.baseline)
	if own.Verdict == check.Pass && seen.failedStep != "" {
		own.Verdict, own.Reason = check.Unknown, seen.failedStep
	}
	return result{Trial: t.id(), Fired: seen.firedAll(t.mustFire()), Verdict: own.Verdict, Reason: own.Reason, Directory: run.Directory, run: &own}
}

// series returns an iterator over the given attempts, each of which makes one run. The argument
// goesOn is a callback, which the iterator calls before each attempt. The iterator ends early when
// goesOn returns false, for example because the time budget is used up.
func series(attempts []campaign.Attempt, goesOn func() bool) iter.Seq2[campaign.Attempt, error] {
	return func(yield func(campaign.Attempt, error) bool) {
		for _, attempt := range attempts {
			if !goesOn() || !yield(attempt, nil) {
				return
			}
		}
	}
}

// runObserver records which faults of a run fired, and whether a step of its workload failed.
type runObserver struct {
	fired      map[int]bool // by the index of a fault in the scenario: true if the fault fired
	failedStep string       // the last step that failed, as text; empty if none did
	late       bool         // true if a step was late, which ends the faults
	// begun is the index of the last step that began before the first fault fired, and begunAt is when it
	// began.
	begun   int
	begunAt time.Duration
	// next is the index of the first step whose operation may have followed the first fault. It is -1 if
	// there is none.
	next int
}

func newRunObserver() *runObserver { return &runObserver{fired: map[int]bool{}, next: -1} }

// operationTime is the maximum time between the record of a step and its operation.
const operationTime = 250 * time.Millisecond

// observe reads the next record of the run's history. If the record says that a fault fired or that
// a step failed, observe stores this in w.
func (w *runObserver) observe(r *history.Record) {
	switch {
	case r.Fault != nil && r.Fault.Event == history.FaultFired:
		if len(w.fired) == 0 && w.begunAt > 0 && r.At-w.begunAt <= operationTime {
			w.next = w.begun
		}
		w.fired[r.Fault.Index] = true
	case r.Step != nil && r.Step.Event == history.StepBegun && len(w.fired) == 0:
		w.begun, w.begunAt = r.Step.Index, r.At
	case r.Step != nil && r.Step.Event == history.StepBegun && w.next < 0:
		w.next = r.Step.Index
	case r.Step != nil && r.Step.Event == history.StepLate:
		w.late = true
	case r.Step != nil && r.Step.Event == history.StepFailed:
		w.failedStep = fmt.Sprintf("step %d (%s) failed: %s", r.Step.Index, r.Step.Detail, r.Step.Error)
	}
}

// disturbed reports whether a step of the workload failed or was late.
func (w *runObserver) disturbed() bool { return w.late || w.failedStep != "" }

// firedAll reports whether all of the given faults fired. Each fault is given by its index in the
// scenario.
func (w *runObserver) firedAll(faults []int) bool {
	return !slices.ContainsFunc(faults, func(i int) bool { return !w.fired[i] })
}
