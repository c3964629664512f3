package mutant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Outcome is what a trial of a mutant came to.
type Outcome struct {
	Mutant string `json:"mutant"` // its ID
	// Of is the fingerprint of the mutant that was tried.
	Of    string `json:"of"`
	State State  `json:"state"`
	// Scenario is the one in which it was caught, with Seed, and Checks are those
	// that failed there, the first to do so first.
	Scenario string   `json:"scenario,omitempty"`
	Seed     uint64   `json:"seed,omitempty"`
	Checks   []string `json:"checks,omitempty"`
	// After is when the first violation was, since the beginning of the run.
	After time.Duration `json:"after,omitempty"`
	// Reason says of a mutant that was not caught what came of its scenarios.
	Reason string `json:"why,omitempty"`
	// When is when that was known.
	When time.Time `json:"when,omitzero"`
}

// State is where a mutant stands.
type State string

// The states.
const (
	// Detected: one of the mutant's checks failed that passed for the unbroken
	// controllers; any check, for one that has none yet.
	Detected State = "detected"
	// NotDetected: none did, whatever else failed.
	NotDetected State = "not detected"
	// Void: the unbroken controllers pass none of its scenarios.
	Void State = "void"
	// NotRun: nobody has tried.
	NotRun State = "not run"
	// Unobservable: nobody needs to.
	Unobservable State = "unobservable"
)

// String is one line.
func (o Outcome) String() string {
	if o.State == Detected {
		return fmt.Sprintf("%s: caught by %s in %s after %.1f s", o.Mutant, strings.Join(o.Checks, ", "), o.Scenario, o.After.Seconds())
	}
	return fmt.Sprintf("%s: %s: %s", o.Mutant, o.State, o.Reason)
}

// UnmodifiedLabel is how the labels begin of runs of unbroken controllers.
const UnmodifiedLabel = "unbroken "

// Trial tries mutants.
type Trial struct {
	Mutants []Mutant
	Seed    uint64 // of every run
	// Parallel is how many builds and runs there are at the same time, at least 1.
	Parallel int
	// Unmodified returns the executable that the mutants of a base were made from.
	Unmodified func(base Base) (string, error)
	// Build makes a mutant's executable.
	Build func(ctx context.Context, m *Mutant) (string, error)
	// Run runs an executable through a scenario with the seed. Label tells it apart.
	Run func(ctx context.Context, label, executable, scenario string) (*reports.Run, error)
	// Done is told of each outcome as it is known, one at a time, and may be slow.
	Done func(Outcome) error
	// Now is the time; nil leaves it out of outcomes.
	Now func() time.Time
}

// baseRun is where the unbroken controllers are looked at.
type baseRun struct {
	base     Base
	scenario string
}

// Do makes the trial. Its error says which runs could not be made, and in which
// scenarios the unbroken controllers did not pass; all others are made all the same.
func (t *Trial) Do(ctx context.Context) error {
	passes, err := t.unmodified(ctx)
	failed := []error{err}
	var mu sync.Mutex // of failed, and of Done
	var group errgroup.Group
	group.SetLimit(t.Parallel)
	for i := range t.Mutants {
		m := &t.Mutants[i]
		if m.UnobservableReason != "" {
			continue
		}
		group.Go(func() error {
			outcome, err := t.try(ctx, m, passes)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("trying mutant %s: %w", m.ID, err))
				return nil
			}
			return t.Done(outcome)
		})
	}
	return errors.Join(group.Wait(), errors.Join(failed...), ctx.Err())
}

// unmodified finds out which scenarios the unbroken controllers pass. Its error says
// of which others it is not so.
func (t *Trial) unmodified(ctx context.Context) (map[baseRun]bool, error) {
	var places []baseRun
	for _, m := range t.Mutants {
		for _, scenario := range m.Scenarios {
			if p := (baseRun{m.Base, scenario}); !slices.Contains(places, p) {
				places = append(places, p)
			}
		}
	}
	passes := map[baseRun]bool{}
	var failed []error
	var mu sync.Mutex // of both
	var group errgroup.Group
	group.SetLimit(t.Parallel)
	for _, p := range places {
		group.Go(func() error {
			err := t.passesUnmodified(ctx, p)
			mu.Lock()
			defer mu.Unlock()
			if passes[p] = err == nil; !passes[p] {
				failed = append(failed, fmt.Errorf("unbroken %s in %s: %w", p.base, p.scenario, err))
			}
			return nil
		})
	}
	return passes, errors.Join(group.Wait(), errors.Join(failed...))
}

// passesUnmodified is nil when the unbroken controllers pass a scenario.
func (t *Trial) passesUnmodified(ctx context.Context, p baseRun) error {
	executable, err := t.Unmodified(p.base)
	if err != nil {
		return err
	}
	judged, err := t.run(ctx, UnmodifiedLabel+string(p.base), executable, p.scenario)
	if err == nil && judged.Verdict != check.Pass {
		err = fmt.Errorf("%s: %s, see %s", judged.Verdict, judged.Reason, judged.Directory)
	}
	return err
}

// run makes a run, or the error says why there is none. One that cannot begin is
// tried once more: on a machine with much to do a control plane may not come up.
func (t *Trial) run(ctx context.Context, label, executable, scenario string) (*reports.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	judged, err := t.Run(ctx, label, executable, scenario)
	if judged == nil && ctx.Err() == nil {
		judged, err = t.Run(ctx, label, executable, scenario)
	}
	if judged != nil && ctx.Err() == nil {
		return judged, nil // what broke off is in its verdict
	}
	return nil, errors.Join(err, ctx.Err())
}

// try builds a mutant and runs it through its scenarios until it is caught.
func (t *Trial) try(ctx context.Context, m *Mutant, passes map[baseRun]bool) (Outcome, error) {
	outcome := Outcome{Mutant: m.ID, Of: m.Fingerprint(), State: Void}
	if t.Now != nil {
		outcome.When = t.Now().UTC().Truncate(time.Second)
	}
	if err := ctx.Err(); err != nil {
		return outcome, err
	}
	executable, err := t.Build(ctx, m)
	if err != nil {
		return outcome, err
	}
	var why []string
	for _, scenario := range m.Scenarios {
		if !passes[baseRun{m.Base, scenario}] {
			why = append(why, scenario+": does not count, the unbroken does not pass")
			continue
		}
		judged, err := t.run(ctx, m.ID, executable, scenario)
		if err != nil {
			return outcome, err
		}
		failed := failedChecks(judged)
		if checks := idsOf(failed); m.detectedBy(checks) {
			outcome.State, outcome.Scenario, outcome.Seed = Detected, scenario, t.Seed
			outcome.After, outcome.Checks = firstViolation(failed[0]), checks
			return outcome, nil
		}
		outcome.State = NotDetected
		why = append(why, fmt.Sprintf("%s: %s: %s", scenario, judged.Verdict, judged.Reason))
	}
	outcome.Reason = strings.Join(why, "; ")
	return outcome, nil
}

// failedChecks are the results that are failures, the first to fail first.
func failedChecks(judged *reports.Run) []check.Result {
	failed := slices.DeleteFunc(slices.Clone(judged.Results), func(r check.Result) bool { return r.Verdict != check.Fail })
	slices.SortStableFunc(failed, func(a, b check.Result) int { return cmp.Compare(firstViolation(a), firstViolation(b)) })
	return failed
}

func idsOf(results []check.Result) []string {
	var ids []string
	for _, r := range results {
		ids = append(ids, r.Check)
	}
	return ids
}

// detectedBy reports whether the mutant is caught by these checks.
func (m *Mutant) detectedBy(failed []string) bool {
	if len(m.Checks) == 0 {
		return len(failed) > 0
	}
	return slices.ContainsFunc(failed, func(id string) bool { return slices.Contains(m.Checks, id) })
}

// firstViolation is when a check first failed, as far as its evidence goes.
func firstViolation(r check.Result) time.Duration {
	if len(r.Evidence) == 0 {
		return 0
	}
	return slices.MinFunc(r.Evidence, func(a, b check.Evidence) int { return cmp.Compare(a.At, b.At) }).At
}
