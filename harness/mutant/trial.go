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

// Outcome is the result of a trial for one mutant: which check detected it in which run.
type Outcome struct {
	Mutant string `json:"mutant"` // the mutant's ID
	// Fingerprint is the mutant's fingerprint at the time of the trial. If the mutant has changed
	// since then, the outcome is out of date.
	Fingerprint string `json:"of"`
	State       State  `json:"state"`
	// Scenario and Seed identify the run that detected the mutant. Checks has the IDs of the
	// checks that failed in that run, ordered by the time of their first violation.
	Scenario string   `json:"scenario,omitempty"`
	Seed     uint64   `json:"seed,omitempty"`
	Checks   []string `json:"checks,omitempty"`
	// After is the time from the start of the run that detected the mutant to the first
	// violation.
	After time.Duration `json:"after,omitempty"`
	// Reason says how the run of each scenario ended. It is empty if the mutant was detected.
	Reason string `json:"why,omitempty"`
	// When is the time at which the mutant's trial began, in UTC.
	When time.Time `json:"when,omitzero"`
}

// State says whether a check detects a mutant, or why this is not known.
type State string

// These values of [State] say whether a check detects a mutant, or why this is not known.
const (
	// Detected means that a check in Mutant.Checks failed in a scenario that the unmodified
	// controllers pass. If Mutant.Checks is empty, a trial counts the failure of any check. But
	// [Mutant.StateOf] counts no failure of such a mutant, and returns NotDetected.
	Detected State = "detected"
	// NotDetected means that the mutant ran in at least one scenario, and no check in Mutant.Checks
	// failed. Mutants run only in scenarios that the unmodified controllers pass.
	NotDetected State = "not detected"
	// Void means that the unmodified controllers pass none of the mutant's scenarios.
	Void State = "void"
	// NotRun means that the mutant has not run since its edits or scenarios last changed.
	NotRun State = "not run"
	// Unobservable means that no check can ever detect the mutant.
	Unobservable State = "unobservable"
)

// String returns the outcome as one line, such as "D5: detected by cache-synced in failover after
// 3.1 s".
func (o Outcome) String() string {
	if o.State == Detected {
		return fmt.Sprintf("%s: detected by %s in %s after %.1f s", o.Mutant, strings.Join(o.Checks, ", "), o.Scenario, o.After.Seconds())
	}
	return fmt.Sprintf("%s: %s: %s", o.Mutant, o.State, o.Reason)
}

// Subject is what one run of a trial tests: a mutant, or the unmodified controllers.
type Subject struct {
	Mutant     string // the mutant's ID; empty for the unmodified controllers
	Base       Base   // the source from which the executable was built
	Executable string // the path of the executable
}

// String returns the name of the subject for progress messages: the mutant's ID, or a text such
// as "unmodified ours".
func (s Subject) String() string {
	if s.Mutant == "" {
		return "unmodified " + string(s.Base)
	}
	return s.Mutant
}

// Expects reports whether a run of the subject should have the given verdict. A mutant should
// fail. The unmodified controllers should pass. They may also have the verdict known-upstream,
// which checks give only if Base is Upstream.
func (s Subject) Expects(verdict check.Verdict) bool {
	if s.Mutant == "" {
		return verdict == check.Pass || verdict == check.KnownUpstream
	}
	return verdict == check.Fail
}

// Trial runs mutants in their scenarios and reports which mutants a check detects.
type Trial struct {
	Mutants []Mutant
	// Parallel is the maximum number of builds and runs at the same time. It must be at least 1.
	Parallel int
	// Unmodified returns the path of an executable of the unmodified controllers. The argument
	// base selects our controllers or upstream's controllers.
	Unmodified func(base Base) (string, error)
	// Build builds a mutant and returns the path of its executable.
	Build func(ctx context.Context, m *Mutant) (string, error)
	// Run runs a scenario on a subject.
	Run func(ctx context.Context, subject Subject, scenario string) (*reports.Run, error)
	// Done receives the outcome of each mutant. The method Do never calls Done concurrently, and
	// returns the first error that Done returns.
	Done func(Outcome) error
	// Now returns the current time. If Now is nil, the outcomes have no time.
	Now func() time.Time
}

// baseRun identifies a run of unmodified controllers by their base (ours or upstream) and the
// scenario.
type baseRun struct {
	base     Base
	scenario string
}

// Do runs each mutant in its scenarios until a check detects it, and passes the outcome to t.Done.
//
// The unmodified controllers run in all these scenarios first. A failed check detects a mutant only
// if the unmodified controllers pass the scenario. Mutants that no check can detect do not run.
//
// If a mutant cannot be built or run, Do continues with the other mutants. The returned error
// contains all errors and the scenarios that the unmodified controllers did not pass.
func (t *Trial) Do(ctx context.Context) error {
	passes, err := t.unmodified(ctx)
	failed := []error{err}
	var mu sync.Mutex // guards failed, done and Done
	done, observable := 0, 0
	var group errgroup.Group
	group.SetLimit(t.Parallel)
	for i := range t.Mutants {
		m := &t.Mutants[i]
		if m.UnobservableReason != "" {
			continue
		}
		observable++
		group.Go(func() error {
			outcome, err := t.try(ctx, m, passes)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && ctx.Err() != nil {
				return nil // the interruption is reported once, below
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("running mutant %s: %w", m.ID, err))
				return nil
			}
			done++
			return t.Done(outcome)
		})
	}
	if err := group.Wait(); err != nil {
		failed = append(failed, err)
	}
	if ctx.Err() != nil && done < observable {
		failed = append(failed, fmt.Errorf("interrupted after %d of %d mutants", done, observable))
	}
	return errors.Join(failed...)
}

// unmodified runs the unmodified controllers in each scenario in which a mutant runs. The
// returned map has the value true for each scenario that they pass. The error lists the other
// scenarios, which cannot detect a mutant.
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
	var mu sync.Mutex // guards passes and failed
	var group errgroup.Group
	group.SetLimit(t.Parallel)
	for _, p := range places {
		group.Go(func() error {
			err := t.passesUnmodified(ctx, p)
			mu.Lock()
			defer mu.Unlock()
			if passes[p] = err == nil; !passes[p] && ctx.Err() == nil {
				failed = append(failed, fmt.Errorf("running the unmodified controllers (%s) in scenario %s: %w", p.base, p.scenario, err))
			}
			return nil
		})
	}
	return passes, errors.Join(group.Wait(), errors.Join(failed...))
}

// passesUnmodified returns nil if the unmodified controllers pass the scenario. Otherwise it
// returns an error with the verdict.
func (t *Trial) passesUnmodified(ctx context.Context, p baseRun) error {
	executable, err := t.Unmodified(p.base)
	if err != nil {
		return err
	}
	unmodified := Subject{Base: p.base, Executable: executable}
	result, err := t.run(ctx, unmodified, p.scenario)
	if err == nil && !unmodified.Expects(result.Verdict) {
		err = fmt.Errorf("%s: %s, see %s", result.Verdict, result.Reason, result.Directory)
	}
	return err
}

// run runs a scenario on a subject: a mutant or the unmodified controllers. If the run cannot
// start, run tries once more, because a control plane may fail to start on a busy machine.
func (t *Trial) run(ctx context.Context, subject Subject, scenario string) (*reports.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result, err := t.Run(ctx, subject, scenario)
	if result == nil && ctx.Err() == nil {
		result, err = t.Run(ctx, subject, scenario)
	}
	if result != nil && ctx.Err() == nil {
		return result, nil // ignore err: the verdict takes it into account
	}
	return nil, errors.Join(err, ctx.Err())
}

// try builds a mutant and runs its scenarios in order, until a scenario detects the mutant. It
// runs only scenarios that the unmodified controllers pass. For these, the map passes has the
// value true.
func (t *Trial) try(ctx context.Context, m *Mutant, passes map[baseRun]bool) (Outcome, error) {
	outcome := Outcome{Mutant: m.ID, Fingerprint: m.Fingerprint(), State: Void}
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
			why = append(why, scenario+": not counted, because the unmodified controllers do not pass it")
			continue
		}
		result, err := t.run(ctx, Subject{m.ID, m.Base, executable}, scenario)
		if err != nil {
			return outcome, err
		}
		failed := failedChecks(result)
		if checks := idsOf(failed); m.detectedBy(checks) {
			outcome.State, outcome.Scenario, outcome.Seed = Detected, scenario, result.Seed
			outcome.After, outcome.Checks = firstViolation(failed[0]), checks
			return outcome, nil
		}
		outcome.State = NotDetected
		why = append(why, fmt.Sprintf("%s: %s: %s", scenario, result.Verdict, result.Reason))
	}
	outcome.Reason = strings.Join(why, "; ")
	return outcome, nil
}

// failedChecks returns the results of the checks that failed, ordered by the time of their first
// violation.
func failedChecks(result *reports.Run) []check.Result {
	failed := slices.DeleteFunc(slices.Clone(result.Results), func(r check.Result) bool { return r.Verdict != check.Fail })
	slices.SortStableFunc(failed, func(a, b check.Result) int { return cmp.Compare(firstViolation(a), firstViolation(b)) })
	return failed
}

// idsOf returns the check ID of each result, such as "max-surge", in the same order.
func idsOf(results []check.Result) []string {
	var ids []string
	for _, r := range results {
		ids = append(ids, r.Check)
	}
	return ids
}

// detectedBy reports whether one of the failed checks is in m.Checks, the checks that should detect
// the mutant. If m.Checks is empty, any failed check counts.
func (m *Mutant) detectedBy(failed []string) bool {
	if len(m.Checks) == 0 {
		return len(failed) > 0
	}
	return slices.ContainsFunc(failed, func(id string) bool { return slices.Contains(m.Checks, id) })
}

// firstViolation returns the time of the first violation in a check's evidence, counted from the
// start of the run. Without evidence, it returns 0.
func firstViolation(r check.Result) time.Duration {
	if len(r.Evidence) == 0 {
		return 0
	}
	return slices.MinFunc(r.Evidence, func(a, b check.Evidence) int { return cmp.Compare(a.At, b.At) }).At
}
