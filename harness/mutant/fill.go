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

// Gaps is a matrix of mutants and scenarios whose missing runs [Trial.Fill] makes, with the limits
// for these runs.
type Gaps struct {
	Matrix    *Matrix
	Scenarios []string // the names of the scenarios
	Texts     Texts    // of at least Scenarios
	// More reports whether there is time for another run.
	More func() bool
	// Save saves the matrix after each run. Fill never calls it concurrently.
	Save func() error
	// Remove removes the executable of a mutant after its runs.
	Remove func(m *Mutant) error

	mu sync.Mutex // guards Matrix, and calls of Save
}

// Fill makes the runs that are missing in a matrix, until [Gaps.More] returns false. A later call
// makes the remaining ones.
//
// First the unmodified controllers run each scenario. Then each mutant runs the scenarios that the
// unmodified controllers pass. The scenario that most likely catches the mutant comes first, and
// the first one that catches it is the last. Fill does not use the fields Done and Now of the
// trial.
func (t *Trial) Fill(ctx context.Context, g *Gaps) error {
	return errors.Join(t.fillUnmodified(ctx, g), t.fillMutants(ctx, g), ctx.Err())
}

// fillUnmodified makes the missing runs of the unmodified controllers.
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
				return fmt.Errorf("running the unmodified controllers of %s in scenario %s: %w", p.base, p.scenario, err)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.Matrix.setBaseline(p.base, p.scenario, newBaseline(p.base, g.Texts[p.scenario], result))
			return g.Save()
		})
	}
	return group.Wait()
}

// missingUnmodified returns the runs of the unmodified controllers that the matrix lacks.
//
// The tiers of scenarios depend on the runs of our controllers. Runs of upstream's controllers are
// needed only if some mutant is a modified upstream controller.
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

// fillMutants builds each mutant that has missing runs, and makes these runs.
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

// fillMutant runs a mutant in scenarios until one of them catches it.
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

// isOpen reports whether the mutant needs further runs. It does until one of the scenarios catches
// it.
func (g *Gaps) isOpen(m *Mutant) bool {
	return m.UnobservableReason == "" && g.Matrix.Find(m, g.Scenarios) != Caught
}

// missingOf returns the scenarios in which the mutant must still run. The scenario that most likely
// catches the mutant comes first. Scenarios that the unmodified controllers do not pass are left
// out.
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

// promise estimates how likely a run in the scenario catches the mutant, for each second of the
// run.
//
// A scenario is promising if it exercises an expected check, and more so if the check has
// failed in it.
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
