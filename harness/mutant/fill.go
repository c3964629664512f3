package mutant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Gaps has a matrix and the scenarios whose missing results [Trial.Fill] adds to the matrix. A
// matrix has at most one result for each mutant in each scenario.
type Gaps struct {
	Matrix    *Matrix
	Scenarios []string // the names of the scenarios to run
	Texts     Texts    // the scenarios as YAML, at least those in Scenarios
	// More reports whether there is time for another run. If it returns false, Fill starts no
	// further run.
	More func() bool
	// Save stores the matrix. Fill calls it after each run, and never concurrently.
	Save func() error
	// Remove deletes the executable of a mutant. Fill calls it after the mutant's runs.
	Remove func(m *Mutant) error

	mu sync.Mutex // guards the fields of Matrix, and calls of Save
}

// Fill makes the runs whose results a matrix of mutants and scenarios lacks. Fill starts no run
// after [Gaps.More] has returned false. Another call of Fill makes the remaining runs.
//
// First, the unmodified controllers run each scenario. Then each mutant runs the scenarios that
// the unmodified controllers pass. The scenario that most likely detects the mutant runs first.
// After a scenario has detected the mutant, the mutant runs no further scenario.
//
// Fill does not use the trial's fields Done and Now.
func (t *Trial) Fill(ctx context.Context, g *Gaps) error {
	err := errors.Join(t.fillUnmodified(ctx, g), t.fillMutants(ctx, g))
	if ctx.Err() != nil {
		return errors.New("interrupted; run the same command to continue")
	}
	return err
}

// fillUnmodified makes the missing runs of the unmodified controllers, and saves the matrix after
// each run.
func (t *Trial) fillUnmodified(ctx context.Context, g *Gaps) error {
	var group errgroup.Group
	group.SetLimit(t.Parallel)
	for _, p := range g.missingUnmodified(t.Mutants) {
		group.Go(func() error {
			if !g.More() {
				return nil
			}
			executable, err := t.Unmodified(p.base)
			if err != nil {
				return err
			}
			result, err := t.run(ctx, Subject{Base: p.base, Executable: executable}, p.scenario)
			if err != nil {
				return fmt.Errorf("running the unmodified controllers (%s) in scenario %s: %w", p.base, p.scenario, err)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.Matrix.setBaseline(p.base, p.scenario, newBaseline(p.base, g.Texts[p.scenario], result))
			return g.Save()
		})
	}
	return group.Wait()
}

// missingUnmodified returns the missing runs of the unmodified controllers.
//
// The choice of scenarios for the tiers needs the runs of our controllers in all scenarios. Runs of
// upstream's controllers are needed only if a mutant of upstream needs further runs.
func (g *Gaps) missingUnmodified(mutants []Mutant) []baseRun {
	var missing []baseRun
	for _, base := range []Base{Ours, Upstream} {
		open := func(m Mutant) bool { return m.Base == base && g.isOpen(&m) }
		if base == Upstream && !slices.ContainsFunc(mutants, open) {
			continue
		}
		for _, name := range g.Scenarios {
			if _, has := g.Matrix.Unmodified[base][name]; !has {
				missing = append(missing, baseRun{base, name})
			}
		}
	}
	return missing
}

// fillMutants builds each mutant that has missing runs, makes these runs, and removes the
// executable.
func (t *Trial) fillMutants(ctx context.Context, g *Gaps) error {
	var group errgroup.Group
	group.SetLimit(t.Parallel)
	for i := range t.Mutants {
		m := &t.Mutants[i]
		g.mu.Lock()
		missing := g.missingOf(m)
		g.mu.Unlock()
		if len(missing) == 0 {
			continue
		}
		group.Go(func() error {
			if !g.More() {
				return nil
			}
			executable, err := t.Build(ctx, m)
			if err != nil {
				return err
			}
			return errors.Join(t.fillMutant(ctx, g, Subject{m.ID, m.Base, executable}, m, missing), g.Remove(m))
		})
	}
	return group.Wait()
}

// fillMutant runs a mutant in scenarios, in their order, until one scenario detects it.
func (t *Trial) fillMutant(ctx context.Context, g *Gaps, subject Subject, m *Mutant, scenarios []string) error {
	for _, name := range scenarios {
		if !g.More() {
			return nil
		}
		result, err := t.run(ctx, subject, name)
		if err != nil {
			return fmt.Errorf("running mutant %s in scenario %s: %w", m.ID, name, err)
		}
		g.mu.Lock()
		g.Matrix.setCell(m.ID, name, newCell(m, g.Texts[name], result))
		caught, err := !g.isOpen(m), g.Save()
		g.mu.Unlock()
		if caught || err != nil {
			return err
		}
	}
	return nil
}

// isOpen reports whether the mutant needs further runs. It returns false if a scenario has detected
// the mutant, or if no check can ever detect it.
func (g *Gaps) isOpen(m *Mutant) bool {
	return m.UnobservableReason == "" && g.Matrix.Find(m, g.Scenarios) != Caught
}

// missingOf returns the scenarios in which the mutant must still run. The scenario that most
// likely detects the mutant comes first. missingOf omits scenarios that the unmodified controllers
// do not pass.
func (g *Gaps) missingOf(m *Mutant) []string {
	if !g.isOpen(m) {
		return nil
	}
	promise := map[string]float64{}
	for _, name := range g.Scenarios {
		baseline, has := g.Matrix.Unmodified[m.Base][name]
		if has && !g.Matrix.measured(m, name) && (Subject{Base: m.Base}).Expects(baseline.Verdict) {
			promise[name] = g.promise(m, name, baseline)
		}
	}
	return slices.SortedFunc(maps.Keys(promise), func(a, b string) int {
		return cmp.Or(cmp.Compare(promise[b], promise[a]), cmp.Compare(a, b))
	})
}

// promise returns an estimate of how likely a run of the scenario detects the mutant, per second
// of the run. A higher number is better.
//
// A check counts one point if it should detect the mutant and the scenario exercises it. Each
// mutant for which that check failed in the scenario counts another point.
func (g *Gaps) promise(m *Mutant, scenario string, baseline Baseline) float64 {
	points := 0
	for _, id := range m.Checks {
		if slices.Contains(baseline.Exercised, id) {
			points++
		}
		for _, cells := range g.Matrix.Cells {
			if slices.Contains(cells[scenario].Failed, id) {
				points++
			}
		}
	}
	return float64(points) / (startUp + baseline.Duration).Seconds()
}
